// Values of floats of 8 bits on the host.
#pragma once

#include <cstdint>

#include "dsl/graph/dtype.h"

namespace tilewright {

/// `type` is float8_e4m3fn or float8_e5m2.
double float8_to_double(DType type, std::uint8_t byte);
/// The nearest, ties to even; what is too large becomes the largest number.
std::uint8_t double_to_float8(DType type, double value);

}  // namespace tilewright
