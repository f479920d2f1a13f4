// Comparisons of indices in 64 bits, as PyTorch has them, in 32 where they fit.
#pragma once

#include "lowering/passes/index_math.h"

namespace tilewright {

Halide::Expr narrow_comparisons(const Halide::Expr &e, const VariableRanges &ranges);

}  // namespace tilewright
