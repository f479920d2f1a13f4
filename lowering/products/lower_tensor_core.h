// Products on Hopper's matrix unit: a producer warp that fetches tiles, warpgroups that multiply them, an epilogue on what they hold.
#pragma once

#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/nests/nest.h"
#include "lowering/nests/storage.h"

namespace tilewright {

/// The stages of the nest whose schedule says tensor_core.
std::vector<int> tensor_core_stages(const Kernel &kernel, const Nest &nest, const ScheduledKernel &schedule);

/// The tile's height and width are the splits of the anchor's axes that the products' operands run along; tensor_core, warpgroups,
/// pipeline, persistent, raster and split_blocks stand on the first product. Blocks that share a tile's terms leave their sums to a second
/// pass, or add them up where cluster(n, 1) makes them one. Several products share their left operand. Operands must be strided reads of
/// float16 or bfloat16 tensors whose other strides are multiples of 16 bytes. UserError where the schedule asks for what the unit cannot
/// do.
std::vector<tile::Launch> lower_tensor_core(const Kernel &kernel, const Placement &placement, int nest, const std::vector<int> &products,
                                            Storage &storage, const ScheduledKernel &schedule, const GpuFacts &facts);

}  // namespace tilewright
