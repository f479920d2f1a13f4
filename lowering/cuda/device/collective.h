// Collectives over threads that are not neighbours, and scans that leave out a thread's own term.
#pragma once

#include "block.h"
#include "types.h"
#include "warp.h"

namespace tw {

/// combine() over the threads of the block whose ranks differ only in (rank / Stride) % Size, in their order. `scratch` is shared memory
/// for one T a thread. Where whole warps lie in a group, each combines its lanes first, and one thread a group what the warps have left.
template<int Size, int Stride, class T, class Combine, class Scratch>
__device__ __forceinline__ T reduce_strided(T value, Combine combine, Scratch &&scratch) {
    constexpr bool has_warps = Stride < 32 && (Stride & (Stride - 1)) == 0 && Size * Stride % 32 == 0;
    constexpr int lanes = has_warps ? 32 / Stride : 1, parts = Size / lanes, apart = Stride * lanes;
    const int rank = thread_rank();
#pragma unroll
    for (int distance = Stride; distance < apart; distance *= 2) {
        const T next = shuffle_down(value, distance, 32);
        value = combine(value, next);
    }
    sync_block();  // an earlier reduction may still be reading
    scratch[rank] = value;
    sync_block();
    const int first = rank - rank / Stride % Size * Stride;
    if constexpr (lanes > 1) {
        if (first == rank) {
            T total = value;
#pragma unroll
            for (int i = 1; i < parts; i++) {
                const T next = scratch[first + i * apart];
                total = combine(total, next);
            }
            scratch[first] = total;
        }
        sync_block();
        return scratch[first];
    } else {
        T total = scratch[first];
#pragma unroll
        for (int i = 1; i < Size; i++) {
            const T next = scratch[first + i * Stride];
            total = combine(total, next);
        }
        return total;
    }
}

/// The same for each of `Count` values, with three barriers for all of them: neighbouring threads share out the sums of neighbouring groups.
/// `scratch` is shared memory for Count values a thread.
template<int Threads, int Size, int Stride, int Count, class T, class Combine, class Scratch>
__device__ __forceinline__ void reduce_each_strided(T (&value)[Count], Combine combine, Scratch &&scratch) {
    constexpr bool has_warps = Stride < 32 && (Stride & (Stride - 1)) == 0 && Size * Stride % 32 == 0;
    constexpr int lanes = has_warps ? 32 / Stride : 1, parts = Size / lanes, apart = Stride * lanes;
    constexpr int groups = Threads / Size;
    const int rank = thread_rank();
#pragma unroll
    for (int i = 0; i < Count; i++) {
#pragma unroll
        for (int distance = Stride; distance < apart; distance *= 2) {
            const T next = shuffle_down(value[i], distance, 32);
            value[i] = combine(value[i], next);
        }
    }
    sync_block();  // an earlier reduction may still be reading
#pragma unroll
    for (int i = 0; i < Count; i++) {
        scratch[i * Threads + rank] = value[i];
    }
    sync_block();
    for (int sum = rank; sum < groups * Count; sum += Threads) {
        const int group = sum % groups;
        const int first = sum / groups * Threads + group / Stride * Stride * Size + group % Stride;
        T total = scratch[first];
#pragma unroll
        for (int i = 1; i < parts; i++) {
            const T next = scratch[first + i * apart];
            total = combine(total, next);
        }
        scratch[first] = total;  // of this group alone
    }
    sync_block();
    const int own = rank - rank / Stride % Size * Stride;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        value[i] = scratch[i * Threads + own];
    }
}

/// First half of a reduction over the blocks of a cluster, in their order, of a value that all threads of a block hold. `scratch` is shared
/// memory for one T a block; it serves once. A cluster barrier must have been passed since the launch.
template<int Blocks, class T, class Scratch> __device__ __forceinline__ void leave_for_cluster(T value, Scratch &&scratch) {
    if (thread_rank() < Blocks) {
        peer(scratch, thread_rank())[cluster_rank()] = value;
    }
}
/// Second half, after a cluster barrier.
template<int Blocks, class T, class Combine, class Scratch> __device__ __forceinline__ T take_from_cluster(Combine combine, Scratch &&scratch) {
    T total = scratch[0];
#pragma unroll
    for (int i = 1; i < Blocks; i++) {
        const T next = scratch[i];
        total = combine(total, next);
    }
    return total;
}

template<class T> struct scanned_before {
    T exclusive;  ///< of all threads before this one; the identity in the first
    T total;      ///< of the whole group
};
/// Exclusive scan over groups of `Threads` threads that stand `Stride` apart, the others between them in groups of their own: Stride is a
/// power of two below 32; Threads * Stride a power of two up to 32, or a multiple of 32. `scratch` as for reduce_across().
template<int Threads, int Stride = 1, class T, class Combine, class Scratch>
__device__ __forceinline__ scanned_before<T> scan_before(T value, T identity, Combine combine, Scratch &&scratch) {
    constexpr int together = Threads * Stride, width = together < 32 ? together : 32;
    const int place = lane_id() % width, group = place % Stride;
    const T inclusive = warp_scan<width, Stride>(value, combine);
    T exclusive = shuffle_up(inclusive, Stride, width);
    if (place < Stride) {
        exclusive = identity;
    }
    if constexpr (together <= 32) {
        return {exclusive, shuffle(inclusive, width - Stride + group, width)};
    } else {
        const carried<T> warps = carry_across_warps<together, Stride>(inclusive, combine, scratch);
        return {warps.is_first ? exclusive : combine(warps.before, exclusive), warps.total};
    }
}

}  // namespace tw
