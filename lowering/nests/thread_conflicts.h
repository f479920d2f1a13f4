// Threads that a stage would take twice: for its elements, and for the parts of each element's sum.
#pragma once

#include "dsl/schedule/loop_nest.h"
#include "lowering/nests/nest.h"

namespace tilewright {

/// UserError where a member of the nest reduces along threads over which its elements are spread already.
void refuse_thread_conflicts(const Nest &nest, const Algorithm &algorithm, const ScheduledKernel &schedule);

}  // namespace tilewright
