// A tensor that a stage reads across its rows: a tile in shared memory is filled along them and read in squares, both by the widest
// accesses.
#pragma once

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Replaces the reads of `source` in the terms of `stage` by reads of the tile that the schedule's `copy` asks for with swizzle().
/// UserError where the block's part is no box, or where an alignment or a stride forbids wide accesses.
void stage_squares(NestWork &work, const Stage &stage, const ScheduledStage &copy, const tile::Buffer &source,
                   std::vector<Halide::Expr> &terms);

}  // namespace tilewright
