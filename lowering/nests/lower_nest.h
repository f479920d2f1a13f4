// A nest becomes launches: its loops, the work in them, and a second launch where a reduction is split over blocks.
#pragma once

#include <set>
#include <vector>

#include "lowering/nests/nest.h"
#include "lowering/nests/storage.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// Anchors of other nests that are computed on the way are added to `finished`.
std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int nest, Storage &storage,
                                     const ScheduledKernel &schedule, std::set<int> &finished);

}  // namespace tilewright
