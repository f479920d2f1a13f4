// Axes whose last vector ends with them: it moves inwards, over elements of the one before, which are computed twice.
#pragma once

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright::tile {

/// How far vectors of `lanes` elements that would pass the axis' end move; the axis has its loops.
Expr inward_shift(const Axis &axis, std::int64_t lanes);
/// Whether the axis is shifted so.
bool moves_inwards(const Axis &axis);

}  // namespace tilewright::tile
