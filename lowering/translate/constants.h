// Literals of an element type.
#pragma once

#include <Halide.h>
#include <cstdint>

#include "dsl/graph/extent.h"

namespace tilewright::translation {

Halide::Expr constant(Halide::Type type, double value);         ///< towards zero for integers
Halide::Expr constant(Halide::Type type, std::int64_t value);   ///< wraps in the type's width
Halide::Expr constant(Halide::Type type, const Extent &value);  ///< converted at run time where it is symbolic

}  // namespace tilewright::translation
