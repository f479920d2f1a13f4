// The launches that combine what the blocks of a nest left of reductions that are split over them, and compute what follows element by
// element.
#pragma once

#include <set>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// One launch for all reductions of equal extents. Nests whose stages only need those sums, each at its own place, are computed there too;
/// their anchors are added to `finished`.
std::vector<tile::Launch> finish_reductions(NestWork &work, std::set<int> &finished);

}  // namespace tilewright
