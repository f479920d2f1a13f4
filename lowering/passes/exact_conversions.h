// Conversions that change no value on the way to a wider type.
#pragma once

#include <Halide.h>

namespace tilewright {

/// Integers of 8 bits that become float16 or bfloat16, which hold each of them, and then a wider float, become that float at once.
Halide::Expr skip_exact_conversions(const Halide::Expr &e);

}  // namespace tilewright
