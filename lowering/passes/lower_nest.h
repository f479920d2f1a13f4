// A nest becomes launches: its loops, the work in them, and a second launch where a reduction is split over blocks.
#pragma once

#include <vector>

#include "lowering/passes/nest.h"
#include "lowering/passes/storage.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, const ScheduledKernel &schedule);

}  // namespace tilewright
