// Conversions in expressions, however they are written: as casts or as calls of convert and explicit_cast.
#pragma once

#include <Halide.h>

namespace tilewright {

/// The operand of a conversion; undefined where the expression is none.
Halide::Expr converted(const Halide::Expr &e);

/// The float32 whose nearest 16-bit float the expression is; undefined where it is something else.
Halide::Expr before_rounding(const Halide::Expr &e);

}  // namespace tilewright
