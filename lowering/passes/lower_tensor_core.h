// Products on Hopper's matrix unit: a producer warp that fetches tiles, warpgroups that multiply them, an epilogue on what they hold.
#pragma once

#include <optional>
#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/passes/nest.h"
#include "lowering/passes/storage.h"

namespace tilewright {

/// The stage of the nest whose schedule says tensor_core.
std::optional<int> tensor_core_stage(const Kernel &kernel, const Nest &nest, const ScheduledKernel &schedule);

/// The tile's height and width are the splits of the anchor's axes that the product's operands run along; tensor_core, warpgroups, pipeline,
/// persistent and raster stand on the product. Both operands must be strided reads of float16 or bfloat16 tensors whose other strides are
/// multiples of 16 bytes. UserError where the schedule asks for what the unit cannot do.
std::vector<tile::Launch> lower_tensor_core(const Kernel &kernel, const Placement &placement, int nest, int product, Storage &storage,
                                            const ScheduledKernel &schedule, const GpuFacts &facts);

}  // namespace tilewright
