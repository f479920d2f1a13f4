// A CPU schedule in the making for one kernel: what the rules for each form of stage write into and ask of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/builder.h"
#include "lowering/cpu_schedules/kernel_flow.h"

namespace tilewright {

struct CpuScheduleDraft {
    explicit CpuScheduleDraft(const Kernel &kernel) : kernel(kernel), flow(analyse_flow(kernel)) {}

    StageSchedule at(const Stage &stage) { return builder[stage.name()]; }
    /// Leading loops of the anchor inside which the stage is computed; 0 where it is computed at the root.
    int depth_of(const KeptStage &kept) const;
    /// An extent, or what is assumed of a symbolic one.
    double typical(const Extent &extent) const;

    /// Whether so many operations are worth a second core.
    static bool is_worth_parallel(double operations);
    /// Spreads the outermost loop that is worth it over the cores, in tasks of some work each. `split`: the axis that was split into its
    /// vectors, or empty.
    void spread(const KeptStage &kept, const std::string &split);

    const Kernel &kernel;
    const KernelFlow flow;
    ScheduleBuilder builder;
    std::vector<std::string> anchor_loops;  ///< name of the loop of each of the anchor's axes that stages are computed at
    std::optional<int> usable_depth;        ///< of the anchor's leading axes: before what is vectorised or tiled; all where not set

private:
    double inner_work(const KeptStage &kept, int axis) const;
    void spread_axis(const KeptStage &kept, int axis, const std::string &loop, double inside);
};

/// Names of the stage's reduction variables, innermost first.
std::vector<std::string> reductions_of(const KeptStage &kept);

}  // namespace tilewright
