// Expressions of a loop's body at another of its iterations.
#pragma once

#include <string>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// The expression with the loop's variable replaced, also inside of the axes that the loop is part of.
Halide::Expr at_iteration(const tile::Launch &launch, const Halide::Expr &e, const std::string &loop, const Halide::Expr &iteration);

}  // namespace tilewright
