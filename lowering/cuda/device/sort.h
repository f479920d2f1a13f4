// A stable sort of one row by the threads of a block: a bitonic network over any number of elements, in shared or global memory.
#pragma once

#include "math_float.h"
#include "math_integer.h"
#include "types.h"

namespace tw {

__device__ __forceinline__ float sort_key(half x) { return float_of(x); }
__device__ __forceinline__ float sort_key(bfloat16 x) { return float_of(x); }
template<class T> __device__ __forceinline__ T sort_key(T x) { return x; }

/// Whether element a at place i goes before element b at place j. NaN is the greatest value; equal values keep their order.
template<class T> __device__ __forceinline__ bool sorts_before(T a, int64 i, T b, int64 j, bool descending) {
    const auto x = sort_key(a);
    const auto y = sort_key(b);
    const bool nan_x = isnan(x), nan_y = isnan(y);
    const bool less = !nan_x && (nan_y || x < y);
    const bool greater = !nan_y && (nan_x || y < x);
    if (!less && !greater) {
        return i < j;
    }
    return descending ? greater : less;
}

/// One comparator: afterwards the element that sorts first stands at `low`.
template<class T, class Values, class Indices>
__device__ __forceinline__ void compare_exchange(Values &&values, Indices &&indices, int64 low, int64 high, bool descending) {
    const T a = values[low];
    const T b = values[high];
    const int64 i = indices[low];
    const int64 j = indices[high];
    if (sorts_before(b, j, a, i, descending)) {
        values[low] = b;
        values[high] = a;
        indices[low] = j;
        indices[high] = i;
    }
}

/// Sorts values[0, n) with indices[0, n), which hold 0 … n-1 before. All `threads` threads of the block call it, after a barrier; a
/// barrier stands at its end. Every comparator points upwards, so that places beyond n need not exist.
template<class T, class Values, class Indices>
__device__ inline void sort_row(Values &&values, Indices &&indices, int64 n, int threads, bool descending) {
    for (int64 size = 2; size / 2 < n; size *= 2) {
        for (int64 half = size / 2; half >= 1; half /= 2) {
            const bool mirrored = half == size / 2;
            for (int64 pair = thread_rank(); pair / half * 2 * half < n; pair += threads) {
                const int64 start = pair / half * 2 * half;
                const int64 place = pair % half;
                const int64 low = start + place;
                const int64 high = mirrored ? start + 2 * half - 1 - place : low + half;
                if (high < n) {
                    compare_exchange<T>(values, indices, low, high, descending);
                }
            }
            sync_block();
        }
    }
}

}  // namespace tw
