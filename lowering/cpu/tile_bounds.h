// How much of a stage one iteration of the loop that computes it needs, where that is a constant: the size of a tile in registers.
#pragma once

#include <map>
#include <string>

#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// A fold whose loops over its value run inside its reduction loops, computed at the root: its elements are accumulated in a tile of
/// their own and stored once.
bool has_accumulator(const Kernel &kernel, const ScheduledStage &stage);

/// Position in the stage's loop order of the last loop outside the first reduction loop; -1 for none.
int loop_outside_reductions(const ScheduledStage &stage);

/// For the stage's axes by name, elements that one iteration of its place computes; axes without a constant are left out. A tile may
/// reach beyond the axis. Empty for stages that are neither accumulated in tiles nor staged copies.
std::map<std::string, std::int64_t> tile_extents(const Kernel &kernel, const ScheduledKernel &scheduled, const ScheduledStage &stage);

}  // namespace tilewright
