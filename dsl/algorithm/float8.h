// Floats of 8 bits: kernels hold them as bytes, and the only arithmetic on them is their conversion.
#pragma once

#include <Halide.h>
#include <optional>

#include "dsl/graph/dtype.h"

namespace tilewright {

/// Of those that the compiler knows: float8_e4m3fn and float8_e5m2.
bool is_float8(DType type);

namespace math {

/// The value of a byte, as float32.
Halide::Expr float8_value(DType type, Halide::Expr byte);
/// The byte nearest to a float32. What is too large becomes what PyTorch makes of it: NaN (float8_e4m3fn) or an infinity (float8_e5m2).
Halide::Expr float8_bits(DType type, Halide::Expr value);
/// The type of which a call of float8_value() gives a value.
std::optional<DType> float8_of(const Halide::Internal::Call *call);

}  // namespace math
}  // namespace tilewright
