// Elementary functions of float32 that need more than float32 on the way: their arguments are reduced, and their polynomials evaluated, in
// float64, so that what is rounded in the end is off by hardly more than half a unit in the last place.
#pragma once

#include "lowering/cpu/math/strict.h"

namespace tilewright::float_math {

Strict sin(const Strict &x);
Strict cos(const Strict &x);
Strict tan(const Strict &x);
Strict pow(const Strict &x, const Strict &y);

}  // namespace tilewright::float_math
