// Approximations by the hardware's own instructions, for stages whose type rounds more coarsely than they err.
#pragma once

#include "math_float.h"
#include "types.h"

namespace tw {

inline constexpr float log2_of_e = 1.4426950408889634F;
inline constexpr float log_of_2 = 0.6931471805599453F;

__device__ __forceinline__ float fast_exp2(float x) { return approximate_exp2(x); }
/// Relative error 2^-22 and half a float step of x * log2(e).
__device__ __forceinline__ float fast_exp(float x) { return approximate_exp2(x * log2_of_e); }
__device__ __forceinline__ float fast_log2(float x) { return approximate_log2(x); }
__device__ __forceinline__ float fast_log(float x) { return approximate_log2(x) * log_of_2; }
__device__ __forceinline__ float fast_reciprocal(float x) { return approximate_reciprocal(x); }
__device__ __forceinline__ float fast_rsqrt(float x) { return approximate_rsqrt(x); }
/// Relative error 2^-22 for all quotients: the divisor is brought near 1 where its reciprocal would leave the range of floats.
__device__ __forceinline__ float fast_div(float a, float b) {
    const float size = abs(b);
    const float scale = size < 0x1p-100F ? 0x1p64F : size > 0x1p100F ? 0x1p-64F : 1.0F;
    return a * approximate_reciprocal(b * scale) * scale;
}
/// Relative error below 2^-17: by an exponential, near 0 by the series.
__device__ __forceinline__ float fast_tanh(float x) {
    const float size = abs(x);
    const float far = fma(-2.0F, approximate_reciprocal(1.0F + fast_exp(2.0F * size)), 1.0F);
    return size < 0x1p-5F ? x * fma(x * x, -0.33333333F, 1.0F) : copysign(far, x);
}

}  // namespace tw
