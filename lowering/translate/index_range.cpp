#include "lowering/translate/index_range.h"

#include <algorithm>
#include <cmath>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/math.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// 32 bits hold every value between, whatever the symbols are.
bool fits(const Extent &low, const Extent &high, const SymbolRanges &symbols) {
    return provably_at_most(INT32_MIN, low, symbols) && provably_at_most(high, INT32_MAX, symbols);
}

class Reader {
public:
    Reader(const std::vector<Extent> &extents, const SymbolRanges &symbols) : extents(extents), symbols(symbols) {}

    std::optional<RangedIndex> read(const Expr &e) const {
        if (auto value = hi::as_const_int(e)) {
            return checked({Expr(), *value, *value}, [&] { return Expr(static_cast<int>(*value)); });
        }
        if (const auto *variable = e.as<hi::Variable>()) {
            return read_variable(e, *variable);
        }
        if (const auto *op = e.as<hi::Add>()) {
            return sum(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Sub>()) {
            return difference(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Mul>()) {
            return product(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Min>()) {
            return extreme(op->a, op->b, false);
        }
        if (const auto *op = e.as<hi::Max>()) {
            return extreme(op->a, op->b, true);
        }
        if (const auto *op = e.as<hi::Div>()) {
            return quotient(op->a, op->b);
        }
        const auto *call = e.as<hi::Call>();
        return !call ? std::nullopt : call->call_type == hi::Call::Halide ? read_stage(*call) : read_call(e, *call);
    }

private:
    using Ranged = std::optional<RangedIndex>;

    template<typename Build> Ranged checked(RangedIndex range, Build build) const {
        if (!fits(range.low, range.high, symbols)) {
            return std::nullopt;
        }
        range.index = build();
        return range;
    }

    Ranged read_variable(const Expr &e, const hi::Variable &variable) const {
        if (e.type() != Halide::Int(32)) {
            return std::nullopt;
        }
        if (auto extent = from_halide(e)) {  // a symbol
            return RangedIndex{e, *extent, *extent};
        }
        for (std::size_t i = 0; i < extents.size(); i++) {
            if (variable.name == "d" + std::to_string(i)) {
                return RangedIndex{e, 0, extents[i] - 1};
            }
        }
        return std::nullopt;
    }

    /// What a stage that only computes gives at a place.
    static Expr value_of(const hi::Call &call) {
        if (call.call_type != hi::Call::Halide || !call.func.defined()) {
            return Expr();
        }
        const hi::Function stage(call.func);
        if (!stage.has_pure_definition() || stage.has_update_definition() || stage.has_extern_definition()) {
            return Expr();
        }
        std::map<std::string, Expr> places;
        for (std::size_t i = 0; i < call.args.size(); i++) {
            places[stage.args()[i]] = call.args[i];
        }
        return hi::substitute(places, stage.definition().values().at(static_cast<std::size_t>(call.value_index)));
    }

    Ranged read_stage(const hi::Call &call) const {
        const Expr value = depth_ < deepest ? value_of(call) : Expr();
        if (!value.defined()) {
            return std::nullopt;
        }
        ++depth_;
        const Ranged result = read(value);
        --depth_;
        return result;
    }

    Ranged read_call(const Expr &e, const hi::Call &call) const {
        std::string_view name = math::primitive_name(&call);
        const std::vector<Expr> &a = call.args;
        bool wide = e.type().is_int() && e.type().bits() >= 32;
        if (!wide) {
            return std::nullopt;
        }
        if (name == "convert" || name == "explicit_cast") {
            bool from_wide = a[0].type().is_int() && a[0].type().bits() >= 32;
            return from_wide ? read(a[0]) : a[0].type().is_float() ? truncated(a[0]) : std::nullopt;
        }
        if (name == "minimum" || name == "maximum") {
            return extreme(a[0], a[1], name == "maximum");
        }
        if (name == "add") {
            return sum(a[0], a[1]);
        }
        if (name == "sub") {
            return difference(a[0], a[1]);
        }
        if (name == "mul") {
            return product(a[0], a[1]);
        }
        if (name == "neg") {
            return difference(Expr(0), a[0]);
        }
        if (name == "div_floor") {
            return quotient(a[0], a[1]);
        }
        return name == "abs" ? absolute(a[0]) : std::nullopt;
    }

    Ranged sum(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        return x && y ? checked({Expr(), x->low + y->low, x->high + y->high}, [&] { return x->index + y->index; }) : std::nullopt;
    }

    Ranged difference(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        return x && y ? checked({Expr(), x->low - y->high, x->high - y->low}, [&] { return x->index - y->index; }) : std::nullopt;
    }

    Ranged product(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        if (x && y && x->low.is_constant() && x->low == x->high) {
            std::swap(x, y);
        }
        if (!x || !y || !y->low.is_constant() || y->low != y->high) {
            return std::nullopt;
        }
        Extent low = x->low * y->low, high = x->high * y->low;
        if (y->low.value() < 0) {
            std::swap(low, high);
        }
        return checked({Expr(), low, high}, [&] { return x->index * y->index; });
    }

    Ranged quotient(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        if (!x || !y || !y->low.is_constant() || y->low != y->high || y->low.value() <= 0) {
            return std::nullopt;
        }
        return checked({Expr(), floor_div(x->low, y->low), floor_div(x->high, y->low)}, [&] { return x->index / y->index; });
    }

    Ranged extreme(const Expr &a, const Expr &b, bool largest) const {
        auto x = read(a), y = read(b);
        if (!x || !y) {
            return std::nullopt;
        }
        return largest ? checked({Expr(), max(x->low, y->low), max(x->high, y->high)}, [&] { return Halide::max(x->index, y->index); })
                       : checked({Expr(), min(x->low, y->low), min(x->high, y->high)}, [&] { return Halide::min(x->index, y->index); });
    }

    Ranged absolute(const Expr &a) const {
        auto x = read(a);
        if (!x) {
            return std::nullopt;
        }
        Extent high = max(x->high, Extent(0) - x->low);
        return checked({Expr(), 0, high}, [&] { return Halide::max(x->index, 0 - x->index); });
    }

    /// A float formula over indices, in its own arithmetic, and between what it lies whatever its roundings are.
    struct RangedFloat {
        Expr value;
        double low, high;
    };
    using Floating = std::optional<RangedFloat>;

    Ranged truncated(const Expr &e) const {
        const Floating x = read_float(e);
        constexpr double most = 1 << 30;
        if (!x || x->low < -most || x->high > most) {
            return std::nullopt;
        }
        return RangedIndex{math::convert(Halide::Int(32), x->value), static_cast<std::int64_t>(x->low), static_cast<std::int64_t>(x->high)};
    }

    static RangedFloat rounded(const Expr &value, double low, double high) {
        const double error = (std::abs(low) + std::abs(high)) * 1e-6;  // a step of float32 is 1.2e-7 of its value
        return {value, low - error, high + error};
    }

    Floating read_float(const Expr &e) const {
        if (const auto *number = e.as<hi::FloatImm>()) {
            return RangedFloat{e, number->value, number->value};
        }
        if (e.type() != Halide::Float(32) && e.type() != Halide::Float(64)) {
            return std::nullopt;
        }
        if (const auto *call = e.as<hi::Call>()) {
            return read_float_call(e, *call);
        }
        const auto operands = [&](const auto *op) -> std::optional<std::pair<RangedFloat, RangedFloat>> {
            const Floating x = op ? read_float(op->a) : std::nullopt, y = x ? read_float(op->b) : std::nullopt;
            return y ? std::optional(std::pair(*x, *y)) : std::nullopt;
        };
        if (const auto p = operands(e.as<hi::Add>())) {
            return rounded(hi::Add::make(p->first.value, p->second.value), p->first.low + p->second.low, p->first.high + p->second.high);
        }
        if (const auto p = operands(e.as<hi::Sub>())) {
            return rounded(hi::Sub::make(p->first.value, p->second.value), p->first.low - p->second.high, p->first.high - p->second.low);
        }
        if (const auto p = operands(e.as<hi::Mul>())) {
            const double ends[] = {p->first.low * p->second.low, p->first.low * p->second.high, p->first.high * p->second.low,
                                   p->first.high * p->second.high};
            return rounded(hi::Mul::make(p->first.value, p->second.value), *std::min_element(ends, ends + 4),
                           *std::max_element(ends, ends + 4));
        }
        return std::nullopt;
    }

    Floating read_float_call(const Expr &e, const hi::Call &call) const {
        if (call.call_type == hi::Call::Halide) {
            const Expr value = depth_ < deepest ? value_of(call) : Expr();
            ++depth_;
            const Floating result = value.defined() ? read_float(value) : std::nullopt;
            --depth_;
            return result;
        }
        const std::string_view name = math::primitive_name(&call);
        if (name == "convert" && call.args[0].type().is_int()) {
            const Ranged index = read(call.args[0]);
            if (!index || !index->low.is_constant() || !index->high.is_constant()) {
                return std::nullopt;
            }
            return rounded(math::convert(e.type(), index->index), static_cast<double>(index->low.value()),
                           static_cast<double>(index->high.value()));
        }
        const Floating x = call.args.empty() ? std::nullopt : read_float(call.args[0]);
        if (x && name == "floor") {
            return RangedFloat{math::floor(x->value), std::floor(x->low), std::floor(x->high)};
        }
        const Floating y = x && call.args.size() == 2 ? read_float(call.args[1]) : std::nullopt;
        if (y && name == "maximum") {
            return RangedFloat{math::maximum(x->value, y->value), std::max(x->low, y->low), std::max(x->high, y->high)};
        }
        if (y && name == "minimum") {
            return RangedFloat{math::minimum(x->value, y->value), std::min(x->low, y->low), std::min(x->high, y->high)};
        }
        return std::nullopt;
    }

    static constexpr int deepest = 12;  ///< stages of stages: what is deeper is no formula of a few terms
    const std::vector<Extent> &extents;
    const SymbolRanges &symbols;
    mutable int depth_ = 0;
};

}  // namespace

bool provably_at_most(const Extent &a, const Extent &b, const SymbolRanges &symbols) { return (b - a).bounds(symbols).min >= 0; }

std::optional<RangedIndex> ranged_index(const Expr &expression, const std::vector<Extent> &extents, const SymbolRanges &symbols) {
    return Reader(extents, symbols).read(expression);
}

}  // namespace tilewright::translation
