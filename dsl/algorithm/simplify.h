// Halide's simplifier where values have PyTorch's meaning: over integers, never inside of what computes floats.
#pragma once

#include <Halide.h>

namespace tilewright {

/// Calls, casts and whatever is no integer stay as they are. `ranges` are those of the variables.
Halide::Expr simplify_integers(const Halide::Expr &e, const Halide::Internal::Scope<Halide::Internal::Interval> &ranges);

}  // namespace tilewright
