// Collectives over threads that are not neighbours, and scans that leave out a thread's own term.
#pragma once

#include "block.h"
#include "types.h"
#include "warp.h"

namespace tw {

/// combine() over the threads of the block whose ranks differ only in (rank / Stride) % Size, in their order. `scratch` is shared memory
/// for one T a thread.
template<int Size, int Stride, class T, class Combine, class Scratch>
__device__ __forceinline__ T reduce_strided(T value, Combine combine, Scratch &&scratch) {
    const int rank = thread_rank();
    sync_block();  // an earlier reduction may still be reading
    scratch[rank] = value;
    sync_block();
    const int first = rank - rank / Stride % Size * Stride;
    T total = scratch[first];
#pragma unroll
    for (int i = 1; i < Size; i++) {
        const T next = scratch[first + i * Stride];
        total = combine(total, next);
    }
    return total;
}

/// The same for each of `Count` values, with three barriers for all of them: neighbouring threads share out the sums of neighbouring groups.
/// `scratch` is shared memory for Count values a thread.
template<int Threads, int Size, int Stride, int Count, class T, class Combine, class Scratch>
__device__ __forceinline__ void reduce_each_strided(T (&value)[Count], Combine combine, Scratch &&scratch) {
    constexpr int groups = Threads / Size;
    const int rank = thread_rank();
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
        for (int i = 1; i < Size; i++) {
            const T next = scratch[first + i * Stride];
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
/// Exclusive scan over groups of `Threads` neighbouring threads: a power of two up to 32, or a multiple of 32. `scratch` as for
/// reduce_across().
template<int Threads, class T, class Combine, class Scratch>
__device__ __forceinline__ scanned_before<T> scan_before(T value, T identity, Combine combine, Scratch &&scratch) {
    constexpr int width = Threads < 32 ? Threads : 32;
    const T inclusive = warp_scan<width>(value, combine);
    T exclusive = shuffle_up(inclusive, 1, width);
    if (lane_id() % width == 0) {
        exclusive = identity;
    }
    if constexpr (Threads <= 32) {
        return {exclusive, shuffle(inclusive, width - 1, width)};
    } else {
        const carried<T> warps = carry_across_warps<Threads>(inclusive, combine, scratch);
        return {warps.is_first ? exclusive : combine(warps.before, exclusive), warps.total};
    }
}

}  // namespace tw
