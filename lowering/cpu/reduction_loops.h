// The reduction domain that a schedule's loops make of a stage's: one variable a loop, in the order of the loops, so that Halide never has
// to split or reorder reduction variables, which it allows only where it can prove it harmless.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <Halide.h>

#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// What split and fused axes are in terms of their loops.
class AxisValues {
public:
    explicit AxisValues(const ScheduledStage &stage) : stage_(stage) {}
    void set(int axis, Halide::Expr value) { values_[axis] = std::move(value); }
    Halide::Expr value(int axis);
    const std::vector<Halide::Expr> &guards() const { return guards_; }  ///< of splits that do not divide

private:
    const ScheduledStage &stage_;
    std::map<int, Halide::Expr> values_;
    std::vector<Halide::Expr> guards_;
};

/// Domain and meaning of the reduction loops of one stage.
struct ReductionLoops {
    Halide::Internal::ReductionDomain domain;         ///< without predicates; undefined where the stage reduces nothing
    std::map<std::string, Halide::Expr> root_values;  ///< of the stage's own reduction variables
    std::vector<Halide::Expr> guards;                 ///< under which an iteration counts
};
ReductionLoops reduction_loops(const ScheduledStage &stage);

/// Replaces variables by name; work is proportional to the number of distinct nodes.
Halide::Expr replace_variables(const std::map<std::string, Halide::Expr> &values, const Halide::Expr &expression);

}  // namespace tilewright
