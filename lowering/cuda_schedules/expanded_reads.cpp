#include "lowering/cuda_schedules/expanded_reads.h"

#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class Expanded : public hi::IRGraphMutator {
public:
    explicit Expanded(const Algorithm &algorithm) : algorithm_(algorithm) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        const Expr e = hi::IRGraphMutator::visit(op);
        const auto *call = e.as<hi::Call>();
        const Stage *stage = call && call->call_type == hi::Call::Halide ? algorithm_.find_stage(call->name) : nullptr;
        const hi::Function function = stage ? stage->func.function() : hi::Function();
        if (!stage || function.has_update_definition() || function.has_extern_definition()) {
            return e;
        }
        Substitution places;
        for (std::size_t i = 0; i < call->args.size(); ++i) {
            places[function.args()[i]] = call->args[i];
        }
        return Expanded(algorithm_).mutate(substitute_variables(inline_lets(function.definition().values()[call->value_index]), places));
    }

private:
    const Algorithm &algorithm_;
};

}  // namespace

Expr expand_reads(const Algorithm &algorithm, const Expr &e) { return Expanded(algorithm).mutate(e); }

}  // namespace tilewright
