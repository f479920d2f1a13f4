// Whose loops compute which stage, and in which order the loops of the root stages run.
#pragma once

#include <string>
#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

const ScheduledStage &scheduled_stage(const ScheduledKernel &schedule, const Stage &stage);

/// For each stage the root stage in whose loops it is computed; -1 where it is inlined.
std::vector<int> stage_anchors(const Algorithm &algorithm, const ScheduledKernel &schedule);

/// Anchors by dependence: a nest after those whose stages its own read. A nest stands where the last of its stages does, as far as that
/// is free: everything that its members read from memory has been computed by then.
std::vector<int> order_of_nests(const Algorithm &algorithm, const ScheduledKernel &schedule, const std::vector<int> &anchors);

}  // namespace tilewright
