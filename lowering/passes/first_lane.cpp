#include "lowering/passes/first_lane.h"

#include <optional>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// What an expression of a vector loop is modulo the lanes: the lane (1), nothing (0), or not known.
class LaneResidue {
public:
    LaneResidue(std::string axis, std::string lane, std::int64_t lanes) : axis_(std::move(axis)), lane_(std::move(lane)), lanes_(lanes) {}
    bool varies(const Expr &e) const { return mentions(e, axis_) || mentions(e, lane_); }
    std::optional<std::int64_t> operator()(const Expr &e) const {
        if (const auto *op = e.as<hi::IntImm>()) {
            return op->value % lanes_ == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
        }
        if (const auto *op = e.as<hi::Variable>()) {
            const bool moves = op->name == axis_ || op->name == lane_;
            return moves ? std::optional<std::int64_t>(1) : op->name == axis_ + ".first" ? std::optional<std::int64_t>(0) : std::nullopt;
        }
        if (const auto *op = e.as<hi::Add>()) {
            const auto a = (*this)(op->a), b = (*this)(op->b);
            return a && b ? std::optional(*a + *b) : std::nullopt;
        }
        if (const auto *op = e.as<hi::Mul>()) {
            const auto *by = op->b.as<hi::IntImm>();
            if (by && by->value % lanes_ == 0 && !varies(op->a)) {
                return 0;
            }
            const auto a = (*this)(op->a);
            return by && a ? std::optional(*a * by->value) : std::nullopt;
        }
        if (const auto *op = e.as<hi::Mod>()) {
            const auto *by = op->b.as<hi::IntImm>();
            const auto a = (*this)(op->a);
            return by && by->value > 0 && by->value % lanes_ == 0 && a && (*a == 0 || *a == 1) ? a : std::nullopt;
        }
        return std::nullopt;
    }

private:
    std::string axis_, lane_;
    std::int64_t lanes_;
};

/// Quotients by multiples of the lanes are those of the first lane: what they index is the same for the whole vector.
class FirstLane : public hi::IRGraphMutator {
public:
    FirstLane(const VectorAxis &vector, bool splits_remainders)
        : residue_(vector.axis, vector.lane, vector.lanes),
          lane_(vector.lane),
          lanes_(vector.lanes),
          first_{{vector.axis, tile::variable(vector.axis + ".first")}, {vector.lane, Expr(0)}},
          splits_remainders_(splits_remainders) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Div *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return is_whole(a, b) ? substitute_variables(a, first_) / b : hi::Div::make(a, b);
    }
    Expr visit(const hi::Mod *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return splits_remainders_ && is_whole(a, b) ? substitute_variables(a, first_) % b + tile::variable(lane_) : hi::Mod::make(a, b);
    }
    Expr visit(const hi::LT *op) override { return compared(op, 0); }
    Expr visit(const hi::GE *op) override { return compared(op, 0); }
    Expr visit(const hi::LE *op) override { return compared(op, 1); }
    Expr visit(const hi::GT *op) override { return compared(op, 1); }

private:
    /// A comparison with `beyond` less than a multiple of the lanes: all lanes lie on one side.
    template<typename Node> Expr compared(const Node *op, std::int64_t beyond) {
        const Expr a = mutate(op->a), b = mutate(op->b);
        const auto *limit = b.template as<hi::IntImm>();
        const bool shared =
            a.type() == Halide::Int(32) && limit && (limit->value + beyond) % lanes_ == 0 && residue_(a) == std::optional<std::int64_t>(1);
        return Node::make(shared ? substitute_variables(a, first_) : a, b);
    }
    bool is_whole(const Expr &a, const Expr &by) const {
        const auto *number = by.as<hi::IntImm>();
        return a.type() == Halide::Int(32) && number && number->value > 0 && number->value % lanes_ == 0 &&
               residue_(a) == std::optional<std::int64_t>(1);
    }
    LaneResidue residue_;
    std::string lane_;
    std::int64_t lanes_;
    Substitution first_;
    bool splits_remainders_;
};

}  // namespace

Expr at_first_lane(const Expr &e, const VectorAxis &vector, bool splits_remainders) {
    return FirstLane(vector, splits_remainders).mutate(e);
}

}  // namespace tilewright
