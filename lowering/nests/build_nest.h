// One nest: the anchor's axes, and the stages that its loops compute with their places on these axes.
#pragma once

#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

/// `anchors`: for each stage the root stage in whose loops it is computed, -1 for an inlined one. Inlined stages whose value is narrower
/// than what reads it, a statistic of a row, become members too.
Nest build_nest(const Algorithm &algorithm, const ScheduledKernel &schedule, const std::vector<int> &anchors, int anchor);

}  // namespace tilewright
