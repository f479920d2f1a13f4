// Comparisons by name, for expressions in which operators could be folded away, and a choice that evaluates both sides.
#pragma once

#include "types.h"

namespace tw {

template<class T> __device__ __forceinline__ bool eq(T a, T b) { return a == b; }
template<class T> __device__ __forceinline__ bool ne(T a, T b) { return a != b; }
template<class T> __device__ __forceinline__ bool lt(T a, T b) { return a < b; }
template<class T> __device__ __forceinline__ bool le(T a, T b) { return a <= b; }
template<class T> __device__ __forceinline__ bool gt(T a, T b) { return a > b; }
template<class T> __device__ __forceinline__ bool ge(T a, T b) { return a >= b; }
template<class T> __device__ __forceinline__ T select(bool condition, T a, T b) { return condition ? a : b; }

}  // namespace tw
