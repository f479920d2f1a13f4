// The first few of a long row: what may be among them is told from a few candidates or, where that leaves too many, by the digits of the
// last of them, found from the top; it is collected and sorted.
#pragma once

#include "block.h"
#include "collective.h"
#include "combiners.h"
#include "types.h"

namespace tw {

inline constexpr int select_bits = 11, select_digits = 1 << select_bits;

/// Says which elements are among the first: those whose leading bits are less than `leading`, and of those that have these bits the ones up
/// to a place.
template<class Key> struct first_elements {
    Key leading = 0, mask = 0;
    int32 last_place = 0x7fffffff;
    __device__ __forceinline__ bool has(Key key, int32 place) const {
        const Key bits = static_cast<Key>(key & mask);
        return bits < leading || (bits == leading && place <= last_place);
    }
};

struct found_digit {
    int32 digit, before, count;  ///< elements with lesser digits, and with this one
};
/// The digit of the `wanted`-th element in the order of digits. `digit(i)` is that of element i, negative where it does not count.
template<int Threads, class Digit, class Counts, class Scratch>
__device__ __forceinline__ found_digit find_digit(int32 length, int32 wanted, Digit digit, Counts &&counts, Scratch &&scratch) {
    constexpr int own = select_digits / Threads;
    static_assert(select_digits % Threads == 0, "every thread looks at as many digits");
    for (int i = thread_rank(); i < select_digits; i += Threads) {
        counts[i] = 0;
    }
    sync_block();
#pragma unroll 8
    for (int32 i = thread_rank(); i < length; i += Threads) {
        const int32 found = digit(i);
        if (found >= 0) {
            atomicAdd(address(counts, found), 1);
        }
    }
    sync_block();
    const int first = thread_rank() * own;
    int32 total = 0;
#pragma unroll
    for (int i = 0; i < own; i++) {
        total += counts[first + i];
    }
    int32 before = scan_before<Threads>(total, 0, sum{}, scratch).exclusive;
    sync_block();  // `scratch` is read no longer
    if (before < wanted && wanted <= before + total) {
#pragma unroll
        for (int i = 0; i < own; i++) {
            const int32 count = counts[first + i];
            if (before < wanted && wanted <= before + count) {
                scratch[0] = first + i;
                scratch[1] = before;
                scratch[2] = count;
            }
            before += count;
        }
    }
    sync_block();
    const found_digit result = {scratch[0], scratch[1], scratch[2]};
    return result;
}

/// Which are the first `count` of keys[0, length), where equal keys stand in the order of their places.
template<int Threads, class Key, class Keys, class Counts, class Scratch>
__device__ __forceinline__ first_elements<Key> find_first(Keys &&keys, int32 length, int32 count, Counts &&counts, Scratch &&scratch) {
    first_elements<Key> first;
    int32 wanted = count;
    for (int bit = 8 * sizeof(Key); bit > 0;) {
        const int width = bit < select_bits ? bit : select_bits;
        bit -= width;
        const found_digit found = find_digit<Threads>(length, wanted, [&](int32 i) {
            const Key key = keys[i];
            return (key & first.mask) == first.leading ? static_cast<int32>(key >> bit) & ((1 << width) - 1) : -1;
        }, counts, scratch);
        first.leading = static_cast<Key>(first.leading | static_cast<Key>(found.digit) << bit);
        first.mask = static_cast<Key>(first.mask | static_cast<Key>((1 << width) - 1) << bit);
        wanted -= found.before;
        if (found.count == wanted) {
            return first;
        }
    }
    int32 leading = 0, mask = 0;
    for (int bit = length > select_digits * select_digits ? 3 * select_bits : length > select_digits ? 2 * select_bits : select_bits; bit > 0;) {
        bit -= select_bits;
        const found_digit found = find_digit<Threads>(length, wanted, [&](int32 i) {
            const Key key = keys[i];
            return key == first.leading && (i & mask) == leading ? i >> bit & (select_digits - 1) : -1;
        }, counts, scratch);
        leading |= found.digit << bit;
        mask |= (select_digits - 1) << bit;
        wanted -= found.before;
    }
    first.last_place = leading;
    return first;
}

/// Sorts keys[0, Count), Count a power of two, in shared memory, with the places that tell equal keys apart.
template<int Threads, int Count, class Key, class Keys, class Places> __device__ __forceinline__ void sort_pairs(Keys &&keys, Places &&places) {
    for (int size = 2; size <= Count; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            for (int pair = thread_rank(); pair < Count / 2; pair += Threads) {
                const int low = pair / stride * 2 * stride + pair % stride, high = low + stride;
                const Key a = keys[low], b = keys[high];
                const int32 i = places[low], j = places[high];
                const bool exchange = b < a || (b == a && j < i);
                if (exchange == ((low & size) == 0)) {
                    keys[low] = b;
                    keys[high] = a;
                    places[low] = j;
                    places[high] = i;
                }
            }
            sync_block();
        }
    }
}

/// Puts the elements that `chosen` has into first[0, n) and places[0, n), in any order, as far as there is room; what is left of that gets the
/// greatest key. Gives n, which may be more than Room.
template<int Threads, int Room, class Key, class Keys, class First, class Places, class Scratch>
__device__ __forceinline__ int32 collect(Keys &&keys, int32 length, const first_elements<Key> &chosen, First &&first, Places &&places, Scratch &&scratch) {
    sync_block();
    if (thread_rank() == 0) {
        scratch[0] = 0;
    }
    sync_block();
#pragma unroll 8
    for (int32 i = thread_rank(); i < length; i += Threads) {
        const Key key = keys[i];
        if (chosen.has(key, i)) {
            const int32 slot = atomicAdd(address(scratch, 0), 1);
            if (slot < Room) {
                first[slot] = key;
                places[slot] = i;
            }
        }
    }
    sync_block();
    const int32 found = scratch[0];
    for (int32 i = found + thread_rank(); i < Room; i += Threads) {
        first[i] = static_cast<Key>(~static_cast<Key>(0));
        places[i] = 0x7fffffff;
    }
    sync_block();
    return found;
}

/// Elements among which the first `count` are, and hardly more: as many threads as that have an element up to the last of them. `heads` is
/// shared memory for a key a thread.
template<int Threads, class Key, class Keys, class Heads, class Counts, class Scratch>
__device__ __forceinline__ first_elements<Key> bound_first(Keys &&keys, int32 length, int32 count, Heads &&heads, Counts &&counts, Scratch &&scratch) {
    Key least = static_cast<Key>(~static_cast<Key>(0));
#pragma unroll 8
    for (int32 i = thread_rank(); i < length; i += Threads) {
        const Key key = keys[i];
        least = key < least ? key : least;
    }
    heads[thread_rank()] = least;
    sync_block();
    first_elements<Key> bound = find_first<Threads, Key>(heads, Threads, count, counts, scratch);
    bound.last_place = first_elements<Key>().last_place;
    return bound;
}

/// The first `count` of keys[0, length) in their order, with their places, as first[0, count) and places[0, count). Room is a power of two, at
/// least `count`, the size of both.
template<class Key, int Threads, int Room, class Keys, class First, class Places, class Heads, class Counts, class Scratch>
__device__ __forceinline__ void select_first(Keys &&keys, int32 length, int32 count, First &&first, Places &&places, Heads &&heads, Counts &&counts,
                                             Scratch &&scratch) {
    int32 found = Room + 1;
    if (4 * count <= Threads && Threads <= length) {
        found = collect<Threads, Room>(keys, length, bound_first<Threads, Key>(keys, length, count, heads, counts, scratch), first, places, scratch);
    }
    if (found > Room) {
        collect<Threads, Room>(keys, length, find_first<Threads, Key>(keys, length, count, counts, scratch), first, places, scratch);
    }
    sort_pairs<Threads, Room, Key>(first, places);
}

}  // namespace tw
