// Drops the clamps that the condition around a value makes idle: what a padded window reads is then linear in its place.
#pragma once

#include "lowering/passes/index_math.h"

namespace tilewright {

/// In select(0 <= i && i < n, t[min(max(i, 0), n - 1)], zero) the read becomes t[i]. It may then only be made where the condition holds.
Halide::Expr assume_conditions(const Halide::Expr &e, const VariableRanges &ranges);

}  // namespace tilewright
