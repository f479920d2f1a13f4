// Elementary functions in float32, written as vectorisable strict arithmetic with an error of one to two units in the last place, right
// for NaN, infinities, signed zeros and denormals.
#pragma once

#include "lowering/cpu/math/strict.h"

namespace tilewright::float_math {

Strict exp(const Strict &x);
Strict exp2(const Strict &x);
Strict expm1(const Strict &x);
Strict log(const Strict &x);
Strict log2(const Strict &x);
Strict log10(const Strict &x);
Strict log1p(const Strict &x);
Strict tanh(const Strict &x);
Strict erf(const Strict &x);

}  // namespace tilewright::float_math
