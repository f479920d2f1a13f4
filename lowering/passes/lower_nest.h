// A nest becomes launches: its loops, the work in them, and a second launch where a reduction is split over blocks.
#pragma once

#include <vector>

#include "lowering/passes/nest.h"
#include "lowering/passes/storage.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, const ScheduledKernel &schedule,
                                     const GpuFacts &facts);

/// The functor of a reduction or scan, with variables NAME_a0…, NAME_b0….
tile::CombinerDefinition combiner_definition(const std::string &name, Combiner combiner, const std::vector<Halide::Type> &types);

}  // namespace tilewright
