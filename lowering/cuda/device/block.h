// Collectives of groups of threads within a block. Every thread of the block calls them together.
#pragma once

#include "types.h"
#include "warp.h"

namespace tw {

/// First half of a reduction over groups of `Threads` neighbouring threads, a multiple of 32: each warp leaves its part in `scratch`, which
/// has room for one T a warp of the block. Several values may be left before one barrier.
template<int Threads, class T, class Combine, class Scratch> __device__ __forceinline__ void leave_for_block(T value, Combine combine, Scratch &&scratch) {
    static_assert(Threads % 32 == 0, "whole warps");
    value = warp_reduce<32>(value, combine);
    if (lane_id() == 0) {
        scratch[thread_rank() / 32] = value;
    }
}
/// Second half, after a barrier: the parts of the group's warps in their order.
template<int Threads, class T, class Combine, class Scratch> __device__ __forceinline__ T take_from_block(Combine combine, Scratch &&scratch) {
    constexpr int warps = Threads / 32;
    const int first = thread_rank() / 32 / warps * warps;
    T total = scratch[first];
    if constexpr (warps <= 8) {
#pragma unroll
        for (int i = 1; i < warps; i++) {
            const T next = scratch[first + i];
            total = combine(total, next);
        }
    } else {
        for (int i = 1; i < warps; i++) {
            const T next = scratch[first + i];
            total = combine(total, next);
        }
    }
    return total;
}

/// combine() over groups of `Threads` neighbouring threads (by thread_rank()): a power of two up to 32, or a multiple of 32. Every
/// thread gets its group's result, with the same bits; terms are combined in the order of the threads. `scratch` is shared memory for
/// one T a warp of the block; it is free for other use when the next barrier has been passed.
template<int Threads, class T, class Combine, class Scratch>
__device__ __forceinline__ T reduce_across(T value, Combine combine, Scratch &&scratch) {
    if constexpr (Threads <= 32) {
        return warp_reduce<Threads>(value, combine);
    } else {
        sync_block();  // an earlier reduction may still be reading
        leave_for_block<Threads>(value, combine, scratch);
        sync_block();
        return take_from_block<Threads, T>(combine, scratch);
    }
}

/// A value of thread `source` of each group of `Threads`, for all of the group.
template<int Threads, class T, class Scratch> __device__ __forceinline__ T broadcast_across(T value, int source, Scratch &&scratch) {
    if constexpr (Threads <= 32) {
        return shuffle(value, source, Threads);
    } else {
        const int group = thread_rank() / Threads;
        sync_block();
        if (thread_rank() % Threads == source) {
            scratch[group] = value;
        }
        sync_block();
        return scratch[group];
    }
}

template<class T> struct carried {
    bool is_first;  ///< whether this warp is the first of its group
    T before;       ///< of all warps before this one; the first has no use for it
    T total;        ///< of the whole group
};
/// From the inclusive scans of the warps of each group of `Threads`, a multiple of 32; of threads that stand `Stride` apart where that is not 1,
/// with the others between them in groups of their own. `scratch` as for reduce_across().
template<int Threads, int Stride = 1, class T, class Combine, class Scratch>
__device__ __forceinline__ carried<T> carry_across_warps(T inclusive, Combine combine, Scratch &&scratch) {
    static_assert(Threads % 32 == 0, "whole warps");
    constexpr int warps = Threads / 32;
    const int warp = thread_rank() / 32, group = lane_id() % Stride;
    sync_block();
    if (lane_id() >= 32 - Stride) {
        scratch[warp * Stride + group] = inclusive;
    }
    sync_block();
    const int first = warp / warps * warps;
    T before = scratch[first * Stride + group];
    T total = before;
    for (int i = 1; i < warps; i++) {
        if (first + i == warp) {
            before = total;
        }
        const T next = scratch[(first + i) * Stride + group];
        total = combine(total, next);
    }
    return {warp == first, before, total};
}

template<class T> struct scanned {
    T inclusive;  ///< of this thread's value and all before it
    T total;      ///< of the whole group
};
/// Inclusive scan over groups of `Threads` neighbouring threads. `scratch` as for reduce_across().
template<int Threads, class T, class Combine, class Scratch>
__device__ __forceinline__ scanned<T> scan_across(T value, Combine combine, Scratch &&scratch) {
    if constexpr (Threads <= 32) {
        const T inclusive = warp_scan<Threads>(value, combine);
        return {inclusive, shuffle(inclusive, Threads - 1, Threads)};
    } else {
        const T inclusive = warp_scan<32>(value, combine);
        const carried<T> warps = carry_across_warps<Threads>(inclusive, combine, scratch);
        return {warps.is_first ? inclusive : combine(warps.before, inclusive), warps.total};
    }
}

/// Element by element over arrays that all threads hold: value[i] of all threads combined, for i < Count.
template<int Threads, int Count, class T, class Combine, class Scratch>
__device__ __forceinline__ void reduce_each_across(T (&value)[Count], Combine combine, Scratch &&scratch) {
#pragma unroll
    for (int i = 0; i < Count; i++) {
        value[i] = reduce_across<Threads>(value[i], combine, scratch);
    }
}

}  // namespace tw
