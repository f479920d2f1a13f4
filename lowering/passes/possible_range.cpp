#include "lowering/passes/possible_range.h"

#include <algorithm>
#include <optional>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/operation.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

Expr wide(const Expr &e) { return e.type() == Halide::Int(64) ? e : Halide::cast<std::int64_t>(e); }

class RangeFinder {
public:
    RangeFinder(const std::string &along, const std::map<std::string, ExprInterval> &others) : along_(along), others_(others) {}

    PossibleRange range(const Expr &condition, bool negated) const {
        const Operation op = operation_of(condition);
        if (op.name == "not") {
            return range(op.operands[0], !negated);
        }
        if (op.name == "and" || op.name == "or") {
            const PossibleRange a = range(op.operands[0], negated), b = range(op.operands[1], negated);
            return (op.name == "and") != negated ? intersection(a, b) : hull(a, b);
        }
        static const std::map<std::string, std::string> opposite = {{"lt", "ge"}, {"ge", "lt"}, {"le", "gt"},
                                                                    {"gt", "le"}, {"eq", "ne"}, {"ne", "eq"}};
        const auto comparison = opposite.find(op.name);
        if (comparison == opposite.end() || !op.operands[0].type().is_int()) {
            return {};
        }
        return compared(negated ? comparison->second : op.name, op.operands[0], op.operands[1]);
    }

private:
    /// factor * along + rest.
    struct Linear {
        std::int64_t factor = 0;
        ExprInterval rest;
    };

    static PossibleRange intersection(const PossibleRange &a, const PossibleRange &b) {
        const auto join = [](const Expr &x, const Expr &y, bool larger) {
            return !x.defined() ? y : !y.defined() ? x : larger ? Halide::max(x, y) : Halide::min(x, y);
        };
        return {join(a.first, b.first, true), join(a.last, b.last, false)};
    }
    static PossibleRange hull(const PossibleRange &a, const PossibleRange &b) {
        PossibleRange result;
        if (a.first.defined() && b.first.defined()) {
            result.first = Halide::min(a.first, b.first);
        }
        if (a.last.defined() && b.last.defined()) {
            result.last = Halide::max(a.last, b.last);
        }
        return result;
    }

    static Expr difference(const Expr &a, const Expr &b) { return hi::is_const_zero(b) ? a : a - b; }

    PossibleRange compared(const std::string &op, const Expr &left, const Expr &right) const {
        const auto a = linear(left), b = linear(right);
        if (!a || !b || std::abs(a->factor - b->factor) != 1) {
            return {};
        }
        // `along` stands left, its opposite right: along (op) limit.
        const bool on_left = a->factor > b->factor;
        const ExprInterval &plus = on_left ? b->rest : a->rest, &minus = on_left ? a->rest : b->rest;
        const Expr least = difference(plus.min, minus.max), most = difference(plus.max, minus.min), one = Halide::cast<std::int64_t>(1);
        if (op == "ne") {
            return {};
        }
        if (op == "eq") {
            return {least, most};
        }
        const bool strict = op == "gt" || op == "lt";
        if ((op == "ge" || op == "gt") == on_left) {
            return {strict ? least + one : least, Expr()};
        }
        return {Expr(), strict ? most - one : most};
    }

    std::optional<Linear> linear(const Expr &e) const {
        if (const auto *variable = e.as<hi::Variable>()) {
            if (variable->name == along_) {
                const Expr zero = Halide::cast<std::int64_t>(0);
                return Linear{1, {zero, zero}};
            }
            if (const auto found = others_.find(variable->name); found != others_.end()) {
                return Linear{0, {wide(found->second.min), wide(found->second.max)}};
            }
        }
        if (is_constant(e)) {
            return Linear{0, {wide(e), wide(e)}};
        }
        const Operation op = operation_of(e);
        if (op.name == "convert" && e.type().bits() >= 32 && op.operands[0].type().is_int()) {
            return linear(op.operands[0]);
        }
        if (op.name == "add" || op.name == "sub") {
            const auto a = linear(op.operands[0]), b = linear(op.operands[1]);
            if (!a || !b) {
                return std::nullopt;
            }
            if (op.name == "add") {
                return Linear{a->factor + b->factor, {a->rest.min + b->rest.min, a->rest.max + b->rest.max}};
            }
            return Linear{a->factor - b->factor, {a->rest.min - b->rest.max, a->rest.max - b->rest.min}};
        }
        if (op.name == "min" || op.name == "max") {
            const auto a = linear(op.operands[0]), b = linear(op.operands[1]);
            if (!a || !b || a->factor != 0 || b->factor != 0) {
                return std::nullopt;
            }
            const auto join = [&](const Expr &x, const Expr &y) { return op.name == "min" ? Halide::min(x, y) : Halide::max(x, y); };
            return Linear{0, {join(a->rest.min, b->rest.min), join(a->rest.max, b->rest.max)}};
        }
        return std::nullopt;
    }

    /// Not even in a read does it mention what varies.
    bool is_constant(const Expr &e) const {
        const std::vector<std::string> names = variables_of(e);
        return e.type().is_int() &&
               std::none_of(names.begin(), names.end(), [&](const std::string &name) { return name == along_ || others_.count(name); });
    }

    const std::string &along_;
    const std::map<std::string, ExprInterval> &others_;
};

}  // namespace

PossibleRange possible_range(const Expr &condition, const std::string &along, const std::map<std::string, ExprInterval> &others) {
    return RangeFinder(along, others).range(condition, false);
}

}  // namespace tilewright
