#include "lowering/cpu/padded_window.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

bool same_place(const Expr &a, const Expr &b) { return hi::graph_equal(a, b) || hi::is_const_zero(hi::simplify(a - b)); }

void conjuncts_of(const Expr &condition, std::vector<Expr> &into) {
    if (const auto *both = condition.as<hi::And>()) {
        conjuncts_of(both->a, into);
        conjuncts_of(both->b, into);
    } else {
        into.push_back(condition);
    }
}

PaddedRead unclamped(const hi::Call *call) {
    PaddedRead read{call};
    for (const Expr &index : call->args) {
        read.places.push_back(without_clamp(index));
    }
    return read;
}

/// Every conjunct says 0 <= place or place < size of one of the read's dimensions, so that the read's own clamps say the same.
bool asks_whether_inside(const Expr &condition, const PaddedRead &read, const std::vector<Extent> &sizes) {
    std::vector<Expr> conjuncts;
    conjuncts_of(condition, conjuncts);
    return std::all_of(conjuncts.begin(), conjuncts.end(), [&](const Expr &conjunct) {
        for (std::size_t i = 0; i < read.places.size(); i++) {
            if (const auto *op = conjunct.as<hi::GE>(); op && hi::is_const_zero(op->b) && same_place(op->a, read.places[i])) {
                return true;
            }
            if (const auto *op = conjunct.as<hi::LT>();
                op && same_place(op->a, read.places[i]) && hi::can_prove(op->b == to_halide(sizes[i]))) {
                return true;
            }
        }
        return false;
    });
}

bool mixes(const Expr &index) {
    bool has_reduction = false, has_argument = false;
    class Find : public hi::IRGraphVisitor {
    public:
        bool &reduction, &argument;
        Find(bool &reduction, bool &argument) : reduction(reduction), argument(argument) {}
        using hi::IRGraphVisitor::visit;
        void visit(const hi::Variable *op) override { (op->reduction_domain.defined() ? reduction : argument) = true; }
    } find(has_reduction, has_argument);
    index.accept(&find);
    return has_reduction && has_argument;
}

bool is_window_read(const hi::Call *call) {
    const bool is_read = (call->call_type == hi::Call::Halide || call->call_type == hi::Call::Image) &&
                         std::none_of(call->args.begin(), call->args.end(), contains_read);
    return is_read && std::any_of(call->args.begin(), call->args.end(), mixes);
}

/// The value's only read, through conversions.
const hi::Call *only_read(Expr value) {
    while (const auto *call = value.as<hi::Call>()) {
        if (is_window_read(call)) {
            return call;
        }
        const std::string_view name = math::primitive_name(call);
        if (name != "convert" && name != "explicit_cast") {
            return nullptr;
        }
        value = call->args[0];
    }
    return nullptr;
}

/// Of select(inside, read, 0), the read.
std::optional<PaddedRead> bordered_read(const hi::Select *op, const ExtentsByName &extents) {
    const hi::Call *read = only_read(op->true_value);
    if (!read || !hi::is_const_zero(op->false_value) || !extents.count(read->name)) {
        return std::nullopt;
    }
    PaddedRead window = unclamped(read);
    window.has_border = true;
    return asks_whether_inside(op->condition, window, extents.at(read->name)) ? std::optional(window) : std::nullopt;
}

class FindWindowReads : public hi::IRGraphVisitor {
public:
    explicit FindWindowReads(const ExtentsByName &extents) : extents_(extents) {}
    std::vector<PaddedRead> found;

private:
    using hi::IRGraphVisitor::visit;
    void visit(const hi::Select *op) override {
        if (const auto read = bordered_read(op, extents_)) {
            found.push_back(*read);
        } else {
            hi::IRGraphVisitor::visit(op);
        }
    }
    void visit(const hi::Call *op) override {
        if (is_window_read(op) && extents_.count(op->name)) {
            found.push_back(unclamped(op));
        } else {
            hi::IRGraphVisitor::visit(op);
        }
    }
    const ExtentsByName &extents_;
};

class ReadPadded : public hi::IRGraphMutator {
public:
    ReadPadded(const PaddedRead &read, const ExtentsByName &extents, hi::Function padded)
        : read_(read), extents_(extents), padded_(std::move(padded)) {}

private:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Select *op) override {
        return bordered_read(op, extents_) ? mutate(op->true_value) : hi::IRGraphMutator::visit(op);
    }
    Expr visit(const hi::Call *op) override {
        return is_window_read(op) && extents_.count(op->name) ? hi::Call::make(padded_, read_.places, 0) : hi::IRGraphMutator::visit(op);
    }
    const PaddedRead &read_;
    const ExtentsByName &extents_;
    hi::Function padded_;
};

}  // namespace

Expr without_clamp(const Expr &e) {
    if (const auto *op = e.as<hi::Max>(); op && hi::is_const(op->b)) {
        return without_clamp(op->a);
    }
    if (const auto *op = e.as<hi::Min>()) {
        return without_clamp(op->a);
    }
    if (const auto *op = e.as<hi::Add>(); op && hi::is_const(op->b)) {
        return without_clamp(op->a) + op->b;
    }
    return e;
}

std::optional<PaddedRead> find_window_read(const Fold &fold, const ExtentsByName &extents) {
    FindWindowReads finder(extents);
    for (const Expr &term : fold.terms) {
        term.accept(&finder);
    }
    const bool is_one = !finder.found.empty() && std::all_of(finder.found.begin(), finder.found.end(), [&](const PaddedRead &read) {
        return read.has_border == finder.found.front().has_border && hi::graph_equal(read.call, finder.found.front().call);
    });
    return is_one ? std::optional(finder.found.front()) : std::nullopt;
}

Expr padded_value(const PaddedRead &read, const ExtentsByName &extents, const std::vector<Expr> &variables) {
    const auto *call = read.call.as<hi::Call>();
    const std::vector<Extent> &sizes = extents.at(call->name);
    std::vector<Expr> clamped;
    Expr inside;
    for (std::size_t i = 0; i < variables.size(); i++) {
        const Expr size = to_halide(sizes[i]);
        const bool may_leave = mixes(call->args[i]);
        clamped.push_back(may_leave ? Halide::max(Halide::min(variables[i], size - 1), 0) : variables[i]);
        if (may_leave && read.has_border) {
            const Expr here = variables[i] >= 0 && variables[i] < size;
            inside = inside.defined() ? inside && here : here;
        }
    }
    const Expr value =
        hi::Call::make(call->type, call->name, clamped, call->call_type, call->func, call->value_index, call->image, call->param);
    return inside.defined() ? hi::Select::make(inside, value, hi::make_zero(value.type())) : value;
}

std::vector<Expr> read_padded(const Fold &fold, const PaddedRead &read, const ExtentsByName &extents, const hi::Function &padded) {
    ReadPadded mutator(read, extents, padded);
    std::vector<Expr> terms;
    for (const Expr &term : fold.terms) {
        terms.push_back(mutator.mutate(term));
    }
    return terms;
}

}  // namespace tilewright
