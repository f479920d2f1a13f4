// Short rows: a bitonic network over what the lanes of a warp hold in registers.
#pragma once

#include "sort_key.h"
#include "types.h"
#include "warp.h"

namespace tw {

/// A key and where its value stood, ordered by both: equal keys keep their order, and no two elements are equal.
template<class Key, bool Packed = sizeof(Key) <= 4> struct sort_entry {
    using word = typename choose<sizeof(Key) <= 2, uint32, uint64>::type;
    static constexpr int place_bits = 4 * sizeof(word);
    word bits;
    static __device__ __forceinline__ sort_entry of(Key key, int32 place) {
        return {static_cast<word>(static_cast<word>(key) << place_bits | static_cast<word>(static_cast<uint32>(place)))};
    }
    __device__ __forceinline__ Key key() const { return static_cast<Key>(bits >> place_bits); }
    __device__ __forceinline__ int32 place() const { return static_cast<int32>(bits & ((static_cast<word>(1) << place_bits) - 1)); }
    __device__ __forceinline__ bool before(const sort_entry &other) const { return bits < other.bits; }
};
template<class Key> struct sort_entry<Key, false> {
    Key high;
    int32 low;
    static __device__ __forceinline__ sort_entry of(Key key, int32 place) { return {key, place}; }
    __device__ __forceinline__ Key key() const { return high; }
    __device__ __forceinline__ int32 place() const { return low; }
    __device__ __forceinline__ bool before(const sort_entry &other) const { return high < other.high || (high == other.high && low < other.low); }
};

/// Sorts the Items elements, a power of two, of each of the 32 lanes, which may hold them in any order; lane 0 then has the first Items.
/// Places are less than 2^16 where keys are narrower than 4 bytes.
template<int Items, class Key> __device__ __forceinline__ void sort_warp(Key (&keys)[Items], int32 (&places)[Items]) {
    static_assert((Items & (Items - 1)) == 0, "a power of two");
    using entry = sort_entry<Key>;
    const int lane = lane_id();
    entry entries[Items];
#pragma unroll
    for (int i = 0; i < Items; i++) {
        entries[i] = entry::of(keys[i], places[i]);
    }
#pragma unroll
    for (int size = 2; size <= 32 * Items; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
            if (stride >= Items) {
                const int mask = stride / Items;
#pragma unroll
                for (int i = 0; i < Items; i++) {
                    const entry other = shuffle_xor(entries[i], mask);
                    const bool upward = ((lane * Items + i) & size) == 0;
                    const bool takes_smaller = upward == ((lane & mask) == 0);
                    if (other.before(entries[i]) == takes_smaller) {
                        entries[i] = other;
                    }
                }
            } else {
#pragma unroll
                for (int i = 0; i < Items; i++) {
                    if ((i & stride) == 0) {
                        const bool upward = ((lane * Items + i) & size) == 0;
                        const entry low = entries[i], high = entries[i | stride];
                        const bool exchange = high.before(low) == upward;
                        entries[i] = exchange ? high : low;
                        entries[i | stride] = exchange ? low : high;
                    }
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < Items; i++) {
        keys[i] = entries[i].key();
        places[i] = entries[i].place();
    }
}

}  // namespace tw
