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

/// How many nodes may be rewritten: what several choices share is rewritten under each.
constexpr int most_visits = 20000;

class Assume : public hi::IRGraphMutator {
public:
    Assume(const VariableRanges &ranges, int &visits) : ranges_(ranges), visits_(visits) {}
    using hi::IRGraphMutator::mutate;
    using hi::IRGraphMutator::visit;

    Expr mutate(const Expr &e) override { return ++visits_ > most_visits ? e : hi::IRGraphMutator::mutate(e); }

    Expr visit(const hi::Select *op) override {
        std::vector<Bound> where_true = bounds_, where_false = bounds_;
        add_bounds(op->condition, true, where_true);
        add_bounds(op->condition, false, where_false);
        return hi::Select::make(op->condition, under(where_true, op->true_value), under(where_false, op->false_value));
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
    Expr under(const std::vector<Bound> &bounds, const Expr &e) {
        if (bounds.size() == bounds_.size()) {
            return mutate(e);
        }
        Assume inside(ranges_, visits_);  // what is known here must not be taken from another place of a shared expression
        inside.bounds_ = bounds;
        return inside.mutate(e);
    }

    /// What follows from the condition, or from its being false.
    void add_bounds(const Expr &condition, bool holds, std::vector<Bound> &bounds) const {
        const auto less = [&](const Expr &a, const Expr &b, bool is_strict) {
            holds ? add(a, b, is_strict, bounds) : add(b, a, !is_strict, bounds);
        };
        if (const auto *op = condition.as<hi::And>(); op && holds) {
            add_bounds(op->a, true, bounds);
            add_bounds(op->b, true, bounds);
        } else if (const auto *op = condition.as<hi::LT>()) {
            less(op->a, op->b, true);
        } else if (const auto *op = condition.as<hi::LE>()) {
            less(op->a, op->b, false);
        } else if (const auto *op = condition.as<hi::GT>()) {
            less(op->b, op->a, true);
        } else if (const auto *op = condition.as<hi::GE>()) {
            less(op->b, op->a, false);
        }
    }
    /// a + slack <= b.
    void add(const Expr &a, const Expr &b, std::int64_t slack, std::vector<Bound> &bounds) const {
        if (a.type() != Halide::Int(32)) {
            return;
        }
        const Expr left = simplify_index(a, ranges_), right = simplify_index(b, ranges_);
        if (const auto *low = left.as<hi::IntImm>()) {
            bounds.push_back({right, low->value + slack, true});
        }
        if (const auto *high = right.as<hi::IntImm>()) {
            bounds.push_back({left, high->value - slack, false});
        }
    }
    bool holds(const Expr &value, std::int64_t limit, bool is_lower) const {
        for (const Bound &known : bounds_) {
            if (value.type() != Halide::Int(32)) {
                return false;
            }
            // value = number + known.value, or number - known.value.
            const bool same = known.is_lower == is_lower;
            const Expr distance = same ? difference_of(value, known.value, ranges_) : difference_of(value + known.value, Expr(0), ranges_);
            const auto *number = distance.as<hi::IntImm>();
            const std::int64_t bound = number ? number->value + (same ? known.bound : -known.bound) : 0;
            if (number && (is_lower ? bound >= limit : bound <= limit)) {
                return true;
            }
        }
        return false;
    }

    const VariableRanges &ranges_;
    int &visits_;
    std::vector<Bound> bounds_;
};

}  // namespace

Expr assume_conditions(const Expr &e, const VariableRanges &ranges) {
    int visits = 0;
    return Assume(ranges, visits).mutate(e);
}

}  // namespace tilewright
