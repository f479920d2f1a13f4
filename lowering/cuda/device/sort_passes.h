// Rows of many blocks: the parts of a pass over one digit that look beyond a block.
#pragma once

#include "sort_digits.h"

namespace tw {

/// counts[d]: how many of the block's elements have digit d.
template<int Threads, int Items, class Key, class Counts> __device__ __forceinline__ void count_digits(const Key (&keys)[Items], int shift, Counts &&counts) {
    for (int digit = thread_rank(); digit < digits; digit += Threads) {
        counts[digit] = 0;
    }
    sync_block();
#pragma unroll
    for (int i = 0; i < Items; i++) {
        atomicAdd(address(counts, digit_of(keys[i], shift)), 1);
    }
    sync_block();
}

/// By one warp: counts[0, blocks) becomes the number of elements in blocks before each, *total that of all.
template<class Counts, class Total> __device__ __forceinline__ void sum_before_blocks(Counts counts, int32 blocks, Total total) {
    int32 before = 0;
    for (int32 first = 0; first < blocks; first += 32) {
        const int32 block = first + lane_id();
        const int32 own = block < blocks ? counts[block] : 0;
        const int32 until = warp_scan(own, sum{});
        if (block < blocks) {
            counts[block] = before + until - own;
        }
        before += shuffle(until, 31);
    }
    if (lane_id() == 0) {
        *total = before;
    }
}

/// bases[d]: what is added to the place among the block's sorted elements of one with digit d to give its place in the row. totals[d] of the
/// row's elements have digit d, before[d * blocks] of them in blocks before this one.
template<int Threads, class Totals, class Before, class Starts, class Bases, class Scratch>
__device__ __forceinline__ void place_block(Totals totals, Before before, int32 blocks, Starts &&starts, Bases &&bases, Scratch &&scratch) {
    constexpr int owners = Threads < digits ? Threads : digits, own = digits / owners;
    const int first = thread_rank() * own;
    int32 total = 0;
    if (thread_rank() < owners) {
#pragma unroll
        for (int i = 0; i < own; i++) {
            total += totals[first + i];
        }
    }
    int32 start = scan_before<Threads>(total, 0, sum{}, scratch).exclusive;
    if (thread_rank() < owners) {
#pragma unroll
        for (int i = 0; i < own; i++) {
            const int digit = first + i;
            const int32 in_block = starts[digit];
            bases[digit] = start + before[static_cast<int64>(digit) * blocks] - in_block;
            start += totals[digit];
        }
    }
    sync_block();
}

}  // namespace tw
