// Conversions between element types with PyTorch's values: exact rounding to float16 and bfloat16 with NaN kept, C's truncation of
// floats to integers as x86 does it, integers that wrap.
#pragma once

#include <Halide.h>

namespace tilewright {

Halide::Expr convert_value(Halide::Type type, const Halide::Expr &x);

}  // namespace tilewright
