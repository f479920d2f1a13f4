// Combinations of directives that are illegal whatever their order.
#pragma once

#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// Throws UserError for the first stage whose directives contradict each other: a place that does not exist or cannot serve, an inlined
/// stage with loops of its own, a reduction run concurrently without a way to combine, threads outside blocks.
void check_legal(const KernelAxes &kernel, const ScheduledKernel &scheduled, ScheduleTarget target);

}  // namespace tilewright
