// Integer arithmetic with PyTorch's values: wraps in its own width, divides by zero to 0, never traps.
#pragma once

#include <Halide.h>

namespace tilewright::integer_math {

using Halide::Expr;

Expr add(const Expr &a, const Expr &b);
Expr sub(const Expr &a, const Expr &b);
Expr mul(const Expr &a, const Expr &b);
Expr neg(const Expr &a);
Expr abs(const Expr &a);
Expr div_trunc(const Expr &a, const Expr &b);
Expr div_floor(const Expr &a, const Expr &b);
Expr fmod(const Expr &a, const Expr &b);
Expr remainder(const Expr &a, const Expr &b);
Expr shift_left(const Expr &a, const Expr &b);   ///< 0 for amounts outside the width
Expr shift_right(const Expr &a, const Expr &b);  ///< the sign for amounts outside the width
Expr pow(const Expr &a, const Expr &b);

}  // namespace tilewright::integer_math
