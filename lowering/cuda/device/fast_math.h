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
/// Results below 2^-126 become 0: for terms of a sum with a larger one.
__device__ __forceinline__ float fast_exp_term(float x) { return approximate_exp2_flushed(x * log2_of_e); }
/// exp(x) for x <= 0, also where that is no normal number: it is computed 2^64 times as large.
__device__ __forceinline__ float fast_exp_below(float x) { return approximate_exp2_flushed(fma(x, log2_of_e, 64.0F)) * 0x1p-64F; }
/// exp(x) / sum likewise, for sums from 1 to 2^31.
__device__ __forceinline__ float fast_exp_share(float x, float sum) {
    return approximate_exp2_flushed(fma(x, log2_of_e, 64.0F)) * (approximate_reciprocal(sum) * 0x1p-64F);
}
__device__ __forceinline__ float fast_log2(float x) { return approximate_log2(x); }
__device__ __forceinline__ float fast_log(float x) { return approximate_log2(x) * log_of_2; }
__device__ __forceinline__ float fast_reciprocal(float x) { return approximate_reciprocal(x); }
__device__ __forceinline__ float fast_rsqrt(float x) { return approximate_rsqrt(x); }
/// Relative error 2^-20 for all quotients: a divisor whose reciprocal would leave the range of floats is brought nearer to 1.
__device__ __forceinline__ float fast_div(float a, float b) {
    const float scale = abs(b) < 0x1p-100F ? 0x1p64F : 1.0F;
    return a * approximate_reciprocal(b * scale) * scale;
}
/// 1/x for x from 2^-60 up, also where that is no normal number: the reciprocal is taken of a number near 1.
__device__ __forceinline__ float fast_reciprocal_of_large(float x) { return approximate_reciprocal_flushed(x * 0x1p-64F) * 0x1p-64F; }
/// a / b for such a divisor.
__device__ __forceinline__ float fast_div_by_large(float a, float b) { return a * fast_reciprocal_of_large(b); }
/// a / (1 + exp(x)): the exponential is taken 2^8 times smaller, so that the reciprocal of the largest floats is a normal number.
__device__ __forceinline__ float fast_logistic_share(float a, float x) {
    return a * 0x1p-8F * approximate_reciprocal_flushed(approximate_exp2_flushed(fma(x, log2_of_e, -8.0F)) + 0x1p-8F);
}
/// Relative error below 2^-17: by an exponential, near 0 by the series.
__device__ __forceinline__ float fast_tanh(float x) {
    const float size = abs(x);
    const float far = fma(-2.0F, fast_reciprocal_of_large(1.0F + fast_exp_term(2.0F * size)), 1.0F);
    return size < 0x1p-5F ? x * fma(x * x, -0.33333333F, 1.0F) : copysign(far, x);
}
/// 1 + tanh(x) to 2^-20 relative, also where the two nearly cancel.
__device__ __forceinline__ float fast_one_plus_tanh(float x) { return 2.0F * fast_reciprocal_of_large(1.0F + fast_exp_term(-2.0F * x)); }
/// 1 + erf(x) to 2^-14 relative, 0 from -4 down: of erfc from 0 to 4 the logarithm is nearly a polynomial.
__device__ __forceinline__ float fast_one_plus_erf(float x) {
    const float size = abs(x);
    float power = fma(2.0194612e-4F, size, -3.66252e-3F);
    power = fma(power, size, 2.9658144e-2F);
    power = fma(power, size, -0.14648822F);
    power = fma(power, size, -0.92102736F);
    power = fma(power, size, -1.6270874F);
    power = fma(power, size, -3.737632e-5F);
    const float tail = size > 4.0F ? 0.0F : approximate_exp2_flushed(power);
    return x > 0.0F ? 2.0F - tail : tail;
}
/// Relative error 2^-11: less than a quarter of a bfloat16 step, for what is rounded to that at once.
__device__ __forceinline__ float rough_tanh(float x) { return approximate_tanh(x); }

}  // namespace tw
