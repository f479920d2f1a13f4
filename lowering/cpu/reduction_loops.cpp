#include "lowering/cpu/reduction_loops.h"

#include "dsl/algorithm/algorithm.h"
#include "dsl/error.h"

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

class ReplaceVariables : public hi::IRGraphMutator {
public:
    explicit ReplaceVariables(const std::map<std::string, Expr> &values) : values_(values) {}

private:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Variable *op) override {
        const auto found = values_.find(op->name);
        return found != values_.end() ? found->second : Expr(op);
    }
    const std::map<std::string, Expr> &values_;
};

}  // namespace

Expr replace_variables(const std::map<std::string, Expr> &values, const Expr &expression) {
    return values.empty() ? expression : ReplaceVariables(values).mutate(expression);
}

Expr AxisValues::value(int index) {
    const auto found = values_.find(index);
    if (found != values_.end()) {
        return found->second;
    }
    const LoopAxis &axis = stage_.axes[index];
    internal_assert(axis.children[0] >= 0, "axis {} of stage {} has no loop", axis.name, stage_.name);
    Expr result;
    if (axis.children[1] >= 0) {
        const std::int64_t factor = stage_.axes[axis.children[1]].factor;
        result = value(axis.children[0]) * static_cast<int>(factor) + value(axis.children[1]);
        const std::optional<std::int64_t> extent = axis.extent.constant();
        if (!extent || *extent % factor != 0) {
            guards_.push_back(result < to_halide(axis.extent));
        }
    } else {
        const LoopAxis &fused = stage_.axes[axis.children[0]];
        const Expr inner = to_halide(stage_.axes[fused.second_parent].extent);
        const Expr both = value(axis.children[0]);
        result = fused.parent == index ? both / inner : both % inner;
    }
    values_[index] = result;
    return result;
}

ReductionLoops reduction_loops(const ScheduledStage &stage) {
    ReductionLoops loops;
    std::vector<hi::ReductionVariable> variables;
    for (auto index = stage.loop_order.rbegin(); index != stage.loop_order.rend(); ++index) {
        const LoopAxis &axis = stage.axes[*index];
        if (axis.reduction) {
            variables.push_back({axis.name, 0, to_halide(axis.extent)});
        }
    }
    if (variables.empty()) {
        return loops;
    }
    loops.domain = hi::ReductionDomain(variables);
    AxisValues values(stage);
    for (const int index : stage.loop_order) {
        if (stage.axes[index].reduction) {
            values.set(index, hi::Variable::make(Halide::Int(32), stage.axes[index].name, loops.domain));
        }
    }
    for (std::size_t i = 0; i < stage.axes.size(); i++) {
        const LoopAxis &axis = stage.axes[i];
        // A root that went to a partial stage has no loop here.
        if (axis.origin == LoopAxis::Origin::root && axis.reduction && (axis.is_loop || axis.children[0] >= 0)) {
            loops.root_values[axis.name] = values.value(static_cast<int>(i));
        }
    }
    loops.guards = values.guards();
    return loops;
}

}  // namespace tilewright
