// Approximations by the hardware's own instructions, for stages whose type rounds more coarsely than they err.
#pragma once

#include "types.h"

namespace tw {

inline constexpr float log2_of_e = 1.4426950408889634F;
inline constexpr float log_of_2 = 0.6931471805599453F;

__device__ __forceinline__ float fast_exp2(float x) { return approximate_exp2(x); }
__device__ __forceinline__ float fast_exp(float x) { return approximate_exp2(x * log2_of_e); }
__device__ __forceinline__ float fast_log2(float x) { return approximate_log2(x); }
__device__ __forceinline__ float fast_log(float x) { return approximate_log2(x) * log_of_2; }
__device__ __forceinline__ float fast_tanh(float x) { return approximate_tanh(x); }
__device__ __forceinline__ float fast_reciprocal(float x) { return approximate_reciprocal(x); }
__device__ __forceinline__ float fast_rsqrt(float x) { return approximate_rsqrt(x); }
__device__ __forceinline__ float fast_div(float a, float b) { return a * approximate_reciprocal(b); }
/// 1 / (1 + exp(-x)), by one exponential and one reciprocal.
__device__ __forceinline__ float fast_sigmoid(float x) { return approximate_reciprocal(1.0F + fast_exp(-x)); }

}  // namespace tw
