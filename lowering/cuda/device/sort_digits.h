// Sorting by digits of 8 bits, stably: the threads of a block rank what they hold in registers and exchange it through shared memory.
// Warp w of a block holds elements 32*Items*w and on; its lane l has those at i*32 + l.
#pragma once

#include "block.h"
#include "collective.h"
#include "combiners.h"
#include "types.h"
#include "warp.h"

namespace tw {

inline constexpr int digits = 256;

template<class Key> __device__ __forceinline__ int32 digit_of(Key key, int shift) { return static_cast<int32>(key >> shift) & (digits - 1); }

/// The lanes of the warp that have the same digit.
__device__ __forceinline__ uint32 lanes_with(int32 digit) {
    uint32 lanes = full_warp;
#pragma unroll
    for (int bit = 1; bit < digits; bit *= 2) {
        const bool is_set = (digit & bit) != 0;
        const uint32 set = ballot(is_set);
        lanes &= is_set ? set : ~set;
    }
    return lanes;
}

/// ranks[i]: how many elements of the warp before element i have its digit. counts[256*w + d]: how many elements of warp w have digit d.
template<int Items, class Key, class Counts>
__device__ __forceinline__ void rank_in_warp(const Key (&keys)[Items], int shift, int32 (&ranks)[Items], Counts &&counts) {
    const int lane = lane_id(), first = thread_rank() / 32 * digits;
    for (int digit = lane; digit < digits; digit += 32) {
        counts[first + digit] = 0;
    }
    sync_warp();
#pragma unroll
    for (int i = 0; i < Items; i++) {
        const int32 digit = digit_of(keys[i], shift);
        const uint32 lanes = lanes_with(digit);
        const int32 earlier = counts[first + digit];
        sync_warp();
        if (lanes >> lane == 1) {  // the last of them
            counts[first + digit] = earlier + count_bits(lanes);
        }
        sync_warp();
        ranks[i] = earlier + count_bits(lanes & ((1U << lane) - 1));
    }
}

/// counts[256*w + d] becomes the number of elements with digit d in warps before w, starts[d] that of elements with lesser digits.
template<int Threads, class Counts, class Starts, class Scratch> __device__ __forceinline__ void place_digits(Counts &&counts, Starts &&starts, Scratch &&scratch) {
    constexpr int owners = Threads < digits ? Threads : digits, own = digits / owners;
    sync_block();
    int32 of_digit[own], total = 0;
    const int first = thread_rank() * own;
    if (thread_rank() < owners) {
#pragma unroll
        for (int i = 0; i < own; i++) {
            int32 before = 0;
#pragma unroll 8
            for (int warp = 0; warp < Threads / 32; warp++) {
                const int32 count = counts[warp * digits + first + i];
                counts[warp * digits + first + i] = before;
                before += count;
            }
            of_digit[i] = before;
            total += before;
        }
    }
    int32 start = scan_before<Threads>(total, 0, sum{}, scratch).exclusive;
    if (thread_rank() < owners) {
#pragma unroll
        for (int i = 0; i < own; i++) {
            starts[first + i] = start;
            start += of_digit[i];
        }
    }
    sync_block();
}

/// Puts the block's elements in order by one digit: sorted[i], order[i] are key and place of the element that then stands at i.
template<int Threads, int Items, class Key, class Sorted, class Order, class Counts, class Starts, class Scratch>
__device__ __forceinline__ void sort_by_digit(const Key (&keys)[Items], const int32 (&places)[Items], int shift, Sorted &&sorted, Order &&order,
                                              Counts &&counts, Starts &&starts, Scratch &&scratch) {
    int32 ranks[Items];
    rank_in_warp(keys, shift, ranks, counts);
    place_digits<Threads>(counts, starts, scratch);
    const int warp = thread_rank() / 32 * digits;
#pragma unroll
    for (int i = 0; i < Items; i++) {
        const int32 digit = digit_of(keys[i], shift);
        const int32 to = ranks[i] + counts[warp + digit] + starts[digit];
        sorted[to] = keys[i];
        order[to] = places[i];
    }
    sync_block();
}

/// The bits in which the keys of elements at places below `length` differ. `scratch` is shared memory for two keys a warp.
template<int Threads, int Items, class Key, class Scratch>
__device__ __forceinline__ Key varying_bits(const Key (&keys)[Items], const int32 (&places)[Items], int32 length, Scratch &&scratch) {
    Key ones = 0, zeros = 0;
#pragma unroll
    for (int i = 0; i < Items; i++) {
        if (places[i] < length) {
            ones = static_cast<Key>(ones | keys[i]);
            zeros = static_cast<Key>(zeros | ~keys[i]);
        }
    }
    const auto either = [](Key a, Key b) { return static_cast<Key>(a | b); };
    ones = warp_reduce<32>(ones, either);
    zeros = warp_reduce<32>(zeros, either);
    if (lane_id() == 0) {
        scratch[thread_rank() / 32 * 2] = ones;
        scratch[thread_rank() / 32 * 2 + 1] = zeros;
    }
    sync_block();
    ones = zeros = 0;
#pragma unroll
    for (int warp = 0; warp < Threads / 32; warp++) {
        const Key set = scratch[2 * warp], clear = scratch[2 * warp + 1];
        ones = static_cast<Key>(ones | set);
        zeros = static_cast<Key>(zeros | clear);
    }
    sync_block();
    return static_cast<Key>(ones & zeros);
}

/// Sorts a row of `length` elements; places beyond it hold the greatest key. The result stands in `sorted` and `order`.
template<int Threads, int Items, class Key, class Sorted, class Order, class Counts, class Starts, class Scratch>
__device__ __forceinline__ void sort_block(Key (&keys)[Items], int32 (&places)[Items], int32 length, Sorted &&sorted, Order &&order, Counts &&counts,
                                           Starts &&starts, Scratch &&scratch) {
    const int first = thread_rank() / 32 * 32 * Items + lane_id();
    Key left = varying_bits<Threads>(keys, places, length, sorted);
    if (left == 0) {
#pragma unroll
        for (int i = 0; i < Items; i++) {
            sorted[first + 32 * i] = keys[i];
            order[first + 32 * i] = places[i];
        }
        sync_block();
    }
    while (left != 0) {
        const int shift = lowest_bit(left);
        sort_by_digit<Threads>(keys, places, shift, sorted, order, counts, starts, scratch);
        left = static_cast<Key>(left & ~static_cast<Key>(static_cast<Key>(digits - 1) << shift));
        if (left != 0) {
#pragma unroll
            for (int i = 0; i < Items; i++) {
                keys[i] = sorted[first + 32 * i];
                places[i] = order[first + 32 * i];
            }
        }
    }
}

}  // namespace tw
