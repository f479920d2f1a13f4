// Floating-point primitives in float and double with PyTorch's meaning; the names are those of dsl/algorithm/math.h.
#pragma once

#include "types.h"

namespace tw {

template<class T> __device__ __forceinline__ T infinity();
template<> __device__ __forceinline__ float infinity<float>() { return float_of(0x7f800000U); }
template<> __device__ __forceinline__ double infinity<double>() { return double_of(0x7ff0000000000000ULL); }
template<class T> __device__ __forceinline__ T not_a_number();
template<> __device__ __forceinline__ float not_a_number<float>() { return float_of(0x7fc00000U); }
template<> __device__ __forceinline__ double not_a_number<double>() { return double_of(0x7ff8000000000000ULL); }

/// x / c, where high + low is 1 / c and both have its sign.
__device__ __forceinline__ float quotient(float x, float high, float low) { return fma(x, high, x * low); }

__device__ __forceinline__ float exp(float x) { return ::expf(x); }
__device__ __forceinline__ double exp(double x) { return ::exp(x); }
__device__ __forceinline__ float exp2(float x) { return ::exp2f(x); }
__device__ __forceinline__ double exp2(double x) { return ::exp2(x); }
__device__ __forceinline__ float expm1(float x) { return ::expm1f(x); }
__device__ __forceinline__ double expm1(double x) { return ::expm1(x); }
__device__ __forceinline__ float log(float x) { return ::logf(x); }
__device__ __forceinline__ double log(double x) { return ::log(x); }
__device__ __forceinline__ float log2(float x) { return ::log2f(x); }
__device__ __forceinline__ double log2(double x) { return ::log2(x); }
__device__ __forceinline__ float log10(float x) { return ::log10f(x); }
__device__ __forceinline__ double log10(double x) { return ::log10(x); }
__device__ __forceinline__ float log1p(float x) { return ::log1pf(x); }
__device__ __forceinline__ double log1p(double x) { return ::log1p(x); }
__device__ __forceinline__ float sqrt(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double sqrt(double x) { return ::sqrt(x); }
__device__ __forceinline__ float rsqrt(float x) { return 1.0F / ::sqrtf(x); }
__device__ __forceinline__ double rsqrt(double x) { return 1.0 / ::sqrt(x); }
__device__ __forceinline__ float sin(float x) { return ::sinf(x); }
__device__ __forceinline__ double sin(double x) { return ::sin(x); }
__device__ __forceinline__ float cos(float x) { return ::cosf(x); }
__device__ __forceinline__ double cos(double x) { return ::cos(x); }
__device__ __forceinline__ float tan(float x) { return ::tanf(x); }
__device__ __forceinline__ double tan(double x) { return ::tan(x); }
__device__ __forceinline__ float asin(float x) { return ::asinf(x); }
__device__ __forceinline__ double asin(double x) { return ::asin(x); }
__device__ __forceinline__ float acos(float x) { return ::acosf(x); }
__device__ __forceinline__ double acos(double x) { return ::acos(x); }
__device__ __forceinline__ float atan(float x) { return ::atanf(x); }
__device__ __forceinline__ double atan(double x) { return ::atan(x); }
__device__ __forceinline__ float sinh(float x) { return ::sinhf(x); }
__device__ __forceinline__ double sinh(double x) { return ::sinh(x); }
__device__ __forceinline__ float cosh(float x) { return ::coshf(x); }
__device__ __forceinline__ double cosh(double x) { return ::cosh(x); }
__device__ __forceinline__ float tanh(float x) { return ::tanhf(x); }
__device__ __forceinline__ double tanh(double x) { return ::tanh(x); }
__device__ __forceinline__ float asinh(float x) { return ::asinhf(x); }
__device__ __forceinline__ double asinh(double x) { return ::asinh(x); }
__device__ __forceinline__ float acosh(float x) { return ::acoshf(x); }
__device__ __forceinline__ double acosh(double x) { return ::acosh(x); }
__device__ __forceinline__ float atanh(float x) { return ::atanhf(x); }
__device__ __forceinline__ double atanh(double x) { return ::atanh(x); }
__device__ __forceinline__ float erf(float x) { return ::erff(x); }
__device__ __forceinline__ double erf(double x) { return ::erf(x); }
__device__ __forceinline__ float erfc(float x) { return ::erfcf(x); }
__device__ __forceinline__ double erfc(double x) { return ::erfc(x); }
__device__ __forceinline__ float lgamma(float x) { return ::lgammaf(x); }
__device__ __forceinline__ double lgamma(double x) { return ::lgamma(x); }
__device__ __forceinline__ float floor(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor(double x) { return ::floor(x); }
__device__ __forceinline__ float ceil(float x) { return ::ceilf(x); }
__device__ __forceinline__ double ceil(double x) { return ::ceil(x); }
__device__ __forceinline__ float trunc(float x) { return ::truncf(x); }
__device__ __forceinline__ double trunc(double x) { return ::trunc(x); }
/// Half to even.
__device__ __forceinline__ float round(float x) { return ::rintf(x); }
__device__ __forceinline__ double round(double x) { return ::rint(x); }
__device__ __forceinline__ float abs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double abs(double x) { return ::fabs(x); }
/// By the sign bit, so that 0.0 becomes -0.0.
__device__ __forceinline__ float neg(float x) { return float_of(bits_of(x) ^ 0x80000000U); }
__device__ __forceinline__ double neg(double x) { return double_of(bits_of(x) ^ 0x8000000000000000ULL); }
__device__ __forceinline__ float copysign(float x, float sign) { return ::copysignf(x, sign); }
__device__ __forceinline__ double copysign(double x, double sign) { return ::copysign(x, sign); }
__device__ __forceinline__ bool signbit(float x) { return (bits_of(x) >> 31) != 0; }
__device__ __forceinline__ bool signbit(double x) { return (bits_of(x) >> 63) != 0; }
__device__ __forceinline__ float atan2(float y, float x) { return ::atan2f(y, x); }
__device__ __forceinline__ double atan2(double y, double x) { return ::atan2(y, x); }
__device__ __forceinline__ float pow(float x, float y) { return ::powf(x, y); }
__device__ __forceinline__ double pow(double x, double y) { return ::pow(x, y); }
__device__ __forceinline__ float nextafter(float x, float y) { return ::nextafterf(x, y); }
__device__ __forceinline__ double nextafter(double x, double y) { return ::nextafter(x, y); }
__device__ __forceinline__ float hypot(float x, float y) { return ::hypotf(x, y); }
__device__ __forceinline__ double hypot(double x, double y) { return ::hypot(x, y); }
__device__ __forceinline__ float fmod(float x, float y) { return ::fmodf(x, y); }
__device__ __forceinline__ double fmod(double x, double y) { return ::fmod(x, y); }

__device__ __forceinline__ bool isnan(float x) { return (bits_of(x) & 0x7fffffffU) > 0x7f800000U; }
__device__ __forceinline__ bool isnan(double x) { return (bits_of(x) & 0x7fffffffffffffffULL) > 0x7ff0000000000000ULL; }
__device__ __forceinline__ bool isinf(float x) { return (bits_of(x) & 0x7fffffffU) == 0x7f800000U; }
__device__ __forceinline__ bool isinf(double x) { return (bits_of(x) & 0x7fffffffffffffffULL) == 0x7ff0000000000000ULL; }
__device__ __forceinline__ bool isfinite(float x) { return (bits_of(x) & 0x7f800000U) != 0x7f800000U; }
__device__ __forceinline__ bool isfinite(double x) { return (bits_of(x) & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL; }

/// NaN if either is NaN; -0.0 is less than 0.0.
__device__ __forceinline__ float minimum(float a, float b) { return min_nan(a, b); }
__device__ __forceinline__ float maximum(float a, float b) { return max_nan(a, b); }

/// The same of an even number of 16-bit floats, two by two.
template<class T> __device__ __forceinline__ uint32 pair_bits(T low, T high) { return low.bits | static_cast<uint32>(high.bits) << 16; }
template<class T> __device__ __forceinline__ uint32 largest_pair(T low, T high) { return pair_bits(low, high); }
template<class T, class... More> __device__ __forceinline__ uint32 largest_pair(T low, T high, More... more) {
    return max_nan_pair(T{}, pair_bits(low, high), largest_pair(more...));
}
template<class T> __device__ __forceinline__ uint32 smallest_pair(T low, T high) { return pair_bits(low, high); }
template<class T, class... More> __device__ __forceinline__ uint32 smallest_pair(T low, T high, More... more) {
    return min_nan_pair(T{}, pair_bits(low, high), smallest_pair(more...));
}
template<class T, class... More> __device__ __forceinline__ T largest(T first, More... more) {
    const uint32 pair = largest_pair(first, more...);
    return {static_cast<uint16>(max_nan_pair(T{}, pair, pair >> 16))};
}
template<class T, class... More> __device__ __forceinline__ T smallest(T first, More... more) {
    const uint32 pair = smallest_pair(first, more...);
    return {static_cast<uint16>(min_nan_pair(T{}, pair, pair >> 16))};
}

__device__ __forceinline__ double minimum(double a, double b) {
    if (isnan(a) || isnan(b)) {
        return isnan(a) ? a : b;
    }
    return a < b || (a == b && signbit(a)) ? a : b;
}
__device__ __forceinline__ double maximum(double a, double b) {
    if (isnan(a) || isnan(b)) {
        return isnan(a) ? a : b;
    }
    return a > b || (a == b && !signbit(a)) ? a : b;
}

/// exp(x) for x <= 0.
__device__ __forceinline__ float exp_below(float x) { return exp(x); }
/// The same as a term of a sum that has exp(0) among its terms: to 2 units in the last place, as 2^t (1 + r) with t the rounded product
/// x log2(e) and r what it misses; below 2^-126 it is 0.
__device__ __forceinline__ float exp_term(float x) {
    const float near = max_nan(x, -104.0F);
    const float power = near * 1.4426950408889634F;
    const float factor = approximate_exp2_flushed(power);
    return fma(factor, fma(power, -0.6931471805599453F, near), factor);
}
/// a / sum, where the sum has exp(0) among its terms.
__device__ __forceinline__ float div_by_sum(float a, float sum) { return a / sum; }

__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ double add(double a, double b) { return a + b; }
__device__ __forceinline__ float sub(float a, float b) { return a - b; }
__device__ __forceinline__ double sub(double a, double b) { return a - b; }
__device__ __forceinline__ float mul(float a, float b) { return a * b; }
__device__ __forceinline__ double mul(double a, double b) { return a * b; }
__device__ __forceinline__ float div_true(float a, float b) { return a / b; }
__device__ __forceinline__ double div_true(double a, double b) { return a / b; }
__device__ __forceinline__ float div_trunc(float a, float b) { return trunc(a / b); }
__device__ __forceinline__ double div_trunc(double a, double b) { return trunc(a / b); }

template<class T> __device__ __forceinline__ T float_remainder(T x, T y) {
    const T rest = fmod(x, y);
    return rest != T(0) && (y < T(0)) != (rest < T(0)) ? rest + y : rest;
}
/// Python's %: the sign of y.
__device__ __forceinline__ float remainder(float x, float y) { return float_remainder(x, y); }
__device__ __forceinline__ double remainder(double x, double y) { return float_remainder(x, y); }

/// Python's //, by way of the remainder: the quotient of exact multiples is exact.
template<class T> __device__ __forceinline__ T float_div_floor(T a, T b) {
    if (b == T(0)) {
        return a / b;
    }
    const T rest = fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (b < T(0)) != (rest < T(0))) {
        quotient -= T(1);
    }
    if (quotient == T(0)) {
        return copysign(T(0), a / b);
    }
    const T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
__device__ __forceinline__ float div_floor(float a, float b) { return float_div_floor(a, b); }
__device__ __forceinline__ double div_floor(double a, double b) { return float_div_floor(a, b); }

}  // namespace tw
