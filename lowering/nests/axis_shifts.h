// How far the rows of memory begin behind an aligned place, for axes whose vectors shall begin at one (`align`).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"
#include "lowering/nests/placed_reads.h"

namespace tilewright {

/// Of the tensor along the axis that is written, for stores cannot begin anywhere, else of the first that is read there. `reads` are the
/// nest's, by producer; undefined where nothing is known.
Halide::Expr axis_shift(const Algorithm &algorithm, const Nest &nest, const std::map<std::string, std::vector<PlacedRead>> &reads,
                        const std::string &axis, int unit);

/// Sums over rows whose vectors begin at different places would add up different columns: UserError.
void refuse_moving_columns(const Nest &nest, const Algorithm &algorithm, const ScheduledStage &anchor);

}  // namespace tilewright
