// How many threads and blocks a nest's leaves ask for, and the final order of its loops.
#pragma once

#include <string>

#include "dsl/schedule/loop_nest.h"
#include "lowering/nests/nest.h"

namespace tilewright {

/// `scanned`: the axis that the anchor scans along, or empty. UserError where no block can have so many threads.
void set_launch_shape(Nest &nest, const ScheduledStage &schedule, const std::string &scanned);

/// UserError for launch_bounds, pipeline or align on a stage that has no launch of its own, and for launch_bounds of another number of
/// threads than the loops ask for. Of a product on the matrix unit its own plan counts the threads.
void check_launch_directives(const Nest &nest, const Algorithm &algorithm, const ScheduledKernel &schedule);

}  // namespace tilewright
