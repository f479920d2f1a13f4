// Scalar primitives with PyTorch's meaning, opaque to Halide's simplifier. Each is a pure extern Call named "tw.NAME"; the CPU target
// expands it into vectorisable arithmetic (lowering/cpu/legalize), the CUDA emitter prints the device function of the same name.
#pragma once

#include <Halide.h>
#include <string_view>
#include <vector>

namespace tilewright::math {

using Halide::Expr;

/// Name prefix of the primitives' Calls.
inline constexpr std::string_view prefix = "tw.";
/// "exp" for a Call named "tw.exp"; empty for anything else.
std::string_view primitive_name(const Halide::Internal::Call *call);
Expr call(Halide::Type type, std::string_view name, const std::vector<Expr> &arguments);

// Floating point: arguments and result share one type, float32 or float64. Arithmetic operators + - * / stay Halide's (strict).
Expr exp(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr log1p(Expr x);
Expr sqrt(Expr x);
Expr rsqrt(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr erf(Expr x);
Expr erfc(Expr x);
Expr erfinv(Expr x);
Expr lgamma(Expr x);
Expr digamma(Expr x);
Expr floor(Expr x);
Expr ceil(Expr x);
Expr trunc(Expr x);
Expr round(Expr x);  ///< half to even
Expr abs(Expr x);    ///< also integers; wraps
Expr neg(Expr x);    ///< -0.0 for 0.0; integers wrap
Expr copysign(Expr x, Expr sign);
Expr signbit(Expr x);  ///< boolean
Expr atan2(Expr y, Expr x);
Expr pow(Expr x, Expr y);        ///< also integers (y >= 0)
Expr fmod(Expr x, Expr y);       ///< C's; integers: 0 where y is 0
Expr remainder(Expr x, Expr y);  ///< Python's: the sign of y; integers: 0 where y is 0
Expr nextafter(Expr x, Expr y);
Expr hypot(Expr x, Expr y);
Expr isnan(Expr x);  ///< boolean
Expr isinf(Expr x);
Expr isfinite(Expr x);

// NaN-propagating; minimum(-0.0, 0.0) is -0.0. Also integers and booleans.
Expr minimum(Expr a, Expr b);
Expr maximum(Expr a, Expr b);

// Comparisons are exact where Halide's simplifier folds f == f: eq, ne, lt, le, gt, ge on floats must use these. Boolean result.
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr gt(Expr a, Expr b);
Expr ge(Expr a, Expr b);

// Integers that wrap in their own width; floats pass through to the plain operators.
Expr add(Expr a, Expr b);
Expr sub(Expr a, Expr b);
Expr mul(Expr a, Expr b);
Expr div_true(Expr a, Expr b);   ///< floats
Expr div_floor(Expr a, Expr b);  ///< Python's //; integers: 0 where b is 0
Expr div_trunc(Expr a, Expr b);  ///< C's /; integers: 0 where b is 0
Expr shift_left(Expr a, Expr b);
Expr shift_right(Expr a, Expr b);
Expr bitwise_and(Expr a, Expr b);
Expr bitwise_or(Expr a, Expr b);
Expr bitwise_xor(Expr a, Expr b);
Expr bitwise_not(Expr a);

/// A conversion that PyTorch's semantics introduce (promotion, storage rounding). Fusion may drop a pair that cancels.
Expr convert(Halide::Type type, Expr x);
/// A conversion that the program wrote; never dropped. Same value as convert().
Expr explicit_cast(Halide::Type type, Expr x);

/// `index` in [0, size) or, with wrap, in [-size, size); yields the wrapped place as Int(32). Out of range raises the error flag
/// with `site` (an index into the plan's error table), the index and the size, and yields 0.
Expr checked_index(Expr index, Expr size, bool wrap, int site);

}  // namespace tilewright::math
