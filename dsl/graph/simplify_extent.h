// Uses the ranges of symbols to decide minima, maxima, remainders and quotients.
#pragma once

#include "dsl/graph/extent.h"

namespace tilewright {

/// An expression that is equal inside the ranges: Max(s0, 1) is s0 where s0 is at least 1, Mod(s0, 64) is s0 where s0 is less than 64.
Extent simplify(const Extent &extent, const SymbolRanges &ranges);

}  // namespace tilewright
