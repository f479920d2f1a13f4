// Lowers a kernel with a `stream` directive to one launch, or two where blocks share keys: a producer warpgroup copies tiles of keys and
// values, consumer warpgroups multiply them on the matrix unit and carry the row reductions along, rescaling what was summed whenever a
// maximum grows.
#pragma once

#include <optional>
#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// The stage that carries a stream directive.
std::optional<int> streaming_stage(const Kernel &kernel, const ScheduledKernel &schedule);

/// UserError where the kernel has no streaming form or the directives do not fit it.
std::vector<tile::Launch> lower_streaming(const Kernel &kernel, int stage, const ScheduledKernel &schedule, const GpuFacts &facts);

}  // namespace tilewright
