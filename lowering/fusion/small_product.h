// Products that are too small for tiles: each sum is a row of its own, shared by a few threads.
#pragma once

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Whether so few terms are multiplied that reading the operands again for each sum costs less than another launch.
bool is_small_product(const Stage &stage, const SymbolRanges &symbols);

}  // namespace tilewright
