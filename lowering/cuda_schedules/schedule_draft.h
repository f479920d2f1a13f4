// A schedule in the making for one kernel: what the rules of each kernel shape write into and ask of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/schedule/builder.h"
#include "lowering/cuda_schedules/schedule_choice.h"
#include "lowering/fusion/shape.h"

namespace tilewright {

/// Name of a stage's i-th argument.
std::string argument(int i);
/// The stage's arguments from the largest stride to the smallest of the first output that is the stage, or is one of `others`.
std::vector<int> memory_order(const Algorithm &algorithm, const Stage &stage, const std::vector<std::string> &others = {});

struct ScheduleDraft {
    ScheduleDraft(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice);

    /// Fuses arguments [from, to) and gives the name of the loop.
    std::string fuse_arguments(const Stage &stage, int from, int to, const std::string &name);
    /// Likewise loops of any names, outermost first.
    std::string fuse_names(const Stage &stage, const std::vector<std::string> &names, const std::string &name);
    /// Likewise the reduction variables. The first of them runs fastest in memory; loops nest the other way round.
    std::string fuse_variables(const Stage &stage, int variables);
    /// Arguments from the largest stride of where the stage is stored to the smallest: neighbouring threads write neighbours.
    std::vector<std::string> memory_order(const Stage &stage);
    /// Loops in the order of the space: what is fused stands together.
    void put_in_order(const Stage &anchor, const std::vector<std::string> &names);
    void bound(StageSchedule &s, std::int64_t threads) const;
    /// The search may ask for narrower accesses than are possible, never for wider ones.
    std::int64_t chosen_width(std::int64_t possible) const;
    /// Whether `reader` is computed from `producer`.
    bool depends(const std::string &reader, const std::string &producer) const;

    const Kernel &kernel;
    const Algorithm &algorithm;
    const GpuFacts &facts;
    const ScheduleChoice choice;
    const KernelShapeInfo info;
    ScheduleBuilder builder;
    std::set<std::string> done;  ///< stages that have their place
};

}  // namespace tilewright
