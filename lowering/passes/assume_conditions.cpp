#include "lowering/passes/assume_conditions.h"

#include <vector>

namespace tilewright {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// value >= bound, or value <= bound.
struct Bound {
    Expr value;
    std::int64_t bound;
    bool is_lower;
};

class Assume : public hi::IRGraphMutator {
public:
    explicit Assume(const VariableRanges &ranges) : ranges_(ranges) {}
    using hi::IRGraphMutator::visit;

    Expr visit(const hi::Select *op) override {
        const std::size_t outside = bounds_.size();
        const Expr condition = op->condition, otherwise = Assume(ranges_).mutate(op->false_value);
        add_bounds(condition);
        if (bounds_.size() == outside) {
            return hi::Select::make(condition, mutate(op->true_value), otherwise);
        }
        Assume inside(ranges_);  // what is known here must not be taken from another place of a shared expression
        inside.bounds_ = bounds_;
        const Expr value = inside.mutate(op->true_value);
        bounds_.resize(outside);
        return hi::Select::make(condition, value, otherwise);
    }
    Expr visit(const hi::Min *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        const auto *limit = b.as<hi::IntImm>();
        return limit && holds(a, limit->value, false) ? a : hi::Min::make(a, b);
    }
    Expr visit(const hi::Max *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        const auto *limit = b.as<hi::IntImm>();
        return limit && holds(a, limit->value, true) ? a : hi::Max::make(a, b);
    }

private:
    void add_bounds(const Expr &condition) {
        if (const auto *op = condition.as<hi::And>()) {
            add_bounds(op->a);
            add_bounds(op->b);
        } else if (const auto *op = condition.as<hi::LT>()) {
            add(op->a, op->b, 1);
        } else if (const auto *op = condition.as<hi::LE>()) {
            add(op->a, op->b, 0);
        } else if (const auto *op = condition.as<hi::GT>()) {
            add(op->b, op->a, 1);
        } else if (const auto *op = condition.as<hi::GE>()) {
            add(op->b, op->a, 0);
        }
    }
    /// a + slack <= b.
    void add(const Expr &a, const Expr &b, std::int64_t slack) {
        if (a.type() != Halide::Int(32)) {
            return;
        }
        const Expr left = simplify_index(a, ranges_), right = simplify_index(b, ranges_);
        if (const auto *low = left.as<hi::IntImm>()) {
            bounds_.push_back({right, low->value + slack, true});
        }
        if (const auto *high = right.as<hi::IntImm>()) {
            bounds_.push_back({left, high->value - slack, false});
        }
    }
    bool holds(const Expr &value, std::int64_t limit, bool is_lower) const {
        for (const Bound &known : bounds_) {
            const Expr distance = known.is_lower == is_lower && value.type() == Halide::Int(32) ? difference_of(value, known.value, ranges_) : Expr();
            const auto *number = distance.defined() ? distance.as<hi::IntImm>() : nullptr;
            if (number && (is_lower ? known.bound + number->value >= limit : known.bound + number->value <= limit)) {
                return true;
            }
        }
        return false;
    }

    const VariableRanges &ranges_;
    std::vector<Bound> bounds_;
};

}  // namespace

Expr assume_conditions(const Expr &e, const VariableRanges &ranges) { return Assume(ranges).mutate(e); }

}  // namespace tilewright
