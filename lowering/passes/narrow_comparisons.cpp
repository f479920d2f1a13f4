#include "lowering/passes/narrow_comparisons.h"

#include <cstdlib>

#include "dsl/algorithm/comparison_mutator.h"
#include "lowering/passes/operation.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class Narrow : public ComparisonMutator<Narrow> {
public:
    explicit Narrow(const VariableRanges &ranges) : ranges_(ranges) {}

private:
    friend ComparisonMutator<Narrow>;
    template<typename Node> Expr compare(const Node *op) {
        const Expr a = op->a.type() == Halide::Int(64) ? narrow(op->a) : Expr(), b = a.defined() ? narrow(op->b) : Expr();
        return a.defined() && b.defined() ? Node::make(a, b) : hi::IRGraphMutator::visit(op);
    }

    Expr narrow(const Expr &e) const {
        const Operation op = operation_of(e);
        Expr result;
        if (const auto *constant = e.as<hi::IntImm>()) {
            return std::abs(constant->value) < (1 << 30) ? Expr(static_cast<int>(constant->value)) : Expr();
        }
        if (op.name == "convert") {
            return op.operands[0].type() == Halide::Int(32) ? op.operands[0] : Expr();
        }
        if (op.name == "add" || op.name == "sub") {
            const Expr a = narrow(op.operands[0]), b = narrow(op.operands[1]);
            if (a.defined() && b.defined()) {
                result = op.name == "add" ? a + b : a - b;
            }
        }
        const auto range = result.defined() ? range_of(result, ranges_) : std::nullopt;
        return range && range->min > -(1LL << 31) && range->max < (1LL << 31) ? result : Expr();
    }
    const VariableRanges &ranges_;
};

}  // namespace

Expr narrow_comparisons(const Expr &e, const VariableRanges &ranges) { return Narrow(ranges).mutate(e); }

}  // namespace tilewright
