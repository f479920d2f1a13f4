// Conversions of floats of 8 bits, on their representation.
#pragma once

#include <Halide.h>

namespace tilewright {

/// How the seven bits below the sign are divided, and whether the largest exponent is kept for infinities and NaN.
struct Float8Format {
    int mantissa, bias;
    bool has_infinities;
};
inline constexpr Float8Format float8_e4m3{3, 7, false}, float8_e5m2{2, 15, true};

Halide::Expr float8_value(const Float8Format &format, const Halide::Expr &byte);  ///< float32
Halide::Expr float8_bits(const Float8Format &format, const Halide::Expr &value);  ///< of a float32, rounded to nearest, ties to even

}  // namespace tilewright
