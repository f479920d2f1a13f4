// What stands around a statement: loops and guards, outermost first.
#pragma once

#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// Whether two statements run in the same iterations of the same loops, under the same guards.
bool same_surroundings(const std::vector<const tile::Statement *> &a, const std::vector<const tile::Statement *> &b);

}  // namespace tilewright
