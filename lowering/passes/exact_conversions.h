// Conversions that change no value on the way to a wider type.
#pragma once

#include <Halide.h>

namespace tilewright {

/// Whole numbers that become float16 or bfloat16, which hold each as small as they are known to be, and then a wider float, become that
/// float at once: integers of 8 bits, parts of their bits, and sums, differences and products of such.
Halide::Expr skip_exact_conversions(const Halide::Expr &e);

}  // namespace tilewright
