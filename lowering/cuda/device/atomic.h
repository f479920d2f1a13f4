// Atomic read-modify-write on global or shared memory; the order of sums and products in floating point is not fixed.
#pragma once

#include "combiners.h"
#include "memory.h"
#include "types.h"

namespace tw {

/// *p = combine(*p, value) for types of 4 and 8 bytes, by compare and swap.
template<class T, class Combine> __device__ inline void atomic_update(T *p, T value, Combine combine) {
    using Word = typename choose<sizeof(T) == 8, uint64, uint32>::type;
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "narrower types update the word around them");
    Word *word = reinterpret_cast<Word *>(p);
    Word seen = *word;
    while (true) {
        const Word wanted = reinterpret_bits<Word>(combine(reinterpret_bits<T>(seen), value));
        const Word found = atomicCAS(word, seen, wanted);
        if (found == seen) {
            return;
        }
        seen = found;
    }
}
/// The same for 1- and 2-byte types: the 32-bit word around the element is swapped.
template<class T, class Combine> __device__ inline void atomic_update_narrow(T *p, T value, Combine combine) {
    using Bits = typename unsigned_of<T>::type;
    const uint64 place = reinterpret_cast<uint64>(p);
    uint32 *word = reinterpret_cast<uint32 *>(place & ~3ULL);
    const int shift = static_cast<int>(place & 3ULL) * 8;
    const uint32 mask = (sizeof(T) == 1 ? 0xffU : 0xffffU) << shift;
    uint32 seen = *word;
    while (true) {
        const T old = reinterpret_bits<T>(static_cast<Bits>((seen & mask) >> shift));
        const uint32 fresh = static_cast<uint32>(reinterpret_bits<Bits>(combine(old, value))) << shift;
        const uint32 found = atomicCAS(word, seen, (seen & ~mask) | fresh);
        if (found == seen) {
            return;
        }
        seen = found;
    }
}
template<bool Narrow> struct atomic_width {
    template<class T, class Combine> static __device__ void apply(T *p, T value, Combine combine) { atomic_update(p, value, combine); }
};
template<> struct atomic_width<true> {
    template<class T, class Combine> static __device__ void apply(T *p, T value, Combine combine) { atomic_update_narrow(p, value, combine); }
};

/// Element `index` of `p` becomes combine(element, value).
template<class P, class T, class Combine> __device__ __forceinline__ void atomic_combine(P p, int64 index, T value, Combine combine) {
    atomic_width<(sizeof(T) < 4)>::apply(address(p, index), value, combine);
}
/// *p becomes the larger of itself and `value`.
template<class P> __device__ __forceinline__ void atomic_raise(P p, int32 value) { atomicMax(address(p, 0), value); }
template<class P, class T> __device__ __forceinline__ void atomic_sum(P p, int64 index, T value) {
    if constexpr (sizeof(T) == 2 && adds_neighbours<T>()) {
        add_neighbours(address(p, index), vec<T, 1>{value});
    } else {
        atomic_combine(p, index, value, [](T a, T b) { return static_cast<T>(a + b); });
    }
}
template<class P> __device__ __forceinline__ void atomic_sum(P p, int64 index, float value) { atomicAdd(address(p, index), value); }
template<class P> __device__ __forceinline__ void atomic_sum(P p, int64 index, double value) { atomicAdd(address(p, index), value); }
template<class P> __device__ __forceinline__ void atomic_sum(P p, int64 index, int32 value) { atomicAdd(address(p, index), value); }
template<class P> __device__ __forceinline__ void atomic_sum(P p, int64 index, int64 value) {
    atomicAdd(reinterpret_cast<uint64 *>(address(p, index)), static_cast<uint64>(value));
}
/// `N` neighbours from `index` on grow by `value` each; the order among them is not fixed either.
template<int N, class P, class T> __device__ __forceinline__ void atomic_sum(P p, int64 index, const vec<T, N> &value) {
    constexpr int at_once = static_cast<int>(sizeof(T)) * N > 16 ? 16 / static_cast<int>(sizeof(T)) : N;
#pragma unroll
    for (int i = 0; i < N; i += at_once) {
        if constexpr (adds_neighbours<T>()) {
            vec<T, at_once> part;
#pragma unroll
            for (int k = 0; k < at_once; k++) {
                part[k] = value[i + k];
            }
            add_neighbours(range_address<at_once>(p, index + i), part);
        } else {
#pragma unroll
            for (int k = 0; k < at_once; k++) {
                atomic_sum(p, index + i + k, value[i + k]);
            }
        }
    }
}

// --- extremes and products: the same bits in any order, but for products of floats -------------------------------------------------

/// Bits of a float order as a signed integer's where its sign is clear, and the other way round where it is set. Of NaN, which wins, all
/// other bits are set, so that no number replaces it. What a plain read says can only have moved on towards `value` since.
template<bool Largest, class T> __device__ inline void atomic_extreme_float(T *p, T value) {
    using Unsigned = typename unsigned_of<T>::type;
    using Signed = typename choose<sizeof(T) == 8, int64, int32>::type;
    const T seen = *p;
    if (isnan(seen) || (Largest ? seen > value : seen < value) || bits_of(seen) == bits_of(value)) {
        return;
    }
    constexpr Unsigned all = ~Unsigned(0);
    const Unsigned nan = Largest ? all >> 1 : all;
    const Unsigned bits = isnan(value) ? nan : bits_of(value);
    const bool negative = static_cast<Signed>(bits) < 0;
    if (negative == Largest) {
        Largest ? atomicMin(reinterpret_cast<Unsigned *>(p), bits) : atomicMin(reinterpret_cast<Signed *>(p), static_cast<Signed>(bits));
    } else {
        Largest ? atomicMax(reinterpret_cast<Signed *>(p), static_cast<Signed>(bits)) : atomicMax(reinterpret_cast<Unsigned *>(p), bits);
    }
}
template<bool Largest, class P, class T> __device__ __forceinline__ void atomic_extreme(P p, int64 index, T value) {
    if constexpr (same<T, float>::value || same<T, double>::value) {
        atomic_extreme_float<Largest>(address(p, index), value);
    } else if constexpr (sizeof(T) >= 4) {
        Largest ? atomicMax(address(p, index), value) : atomicMin(address(p, index), value);
    } else {
        atomic_combine(p, index, value, typename choose<Largest, max_of, min_of>::type());
    }
}
template<class P, class T> __device__ __forceinline__ void atomic_maximum(P p, int64 index, T value) { atomic_extreme<true>(p, index, value); }
template<class P, class T> __device__ __forceinline__ void atomic_minimum(P p, int64 index, T value) { atomic_extreme<false>(p, index, value); }
template<class P, class T> __device__ __forceinline__ void atomic_product(P p, int64 index, T value) {
    atomic_combine(p, index, value, product());
}
/// update(place, value) for each lane of a vector.
template<class T, int N, class Update> __device__ __forceinline__ void update_lanes(int64 index, const vec<T, N> &value, Update update) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        update(index + i, value[i]);
    }
}
template<int N, class P, class T> __device__ __forceinline__ void atomic_maximum(P p, int64 index, const vec<T, N> &value) {
    update_lanes(index, value, [&](int64 place, T lane) { atomic_maximum(p, place, lane); });
}
template<int N, class P, class T> __device__ __forceinline__ void atomic_minimum(P p, int64 index, const vec<T, N> &value) {
    update_lanes(index, value, [&](int64 place, T lane) { atomic_minimum(p, place, lane); });
}
template<int N, class P, class T> __device__ __forceinline__ void atomic_product(P p, int64 index, const vec<T, N> &value) {
    update_lanes(index, value, [&](int64 place, T lane) { atomic_product(p, place, lane); });
}

}  // namespace tw
