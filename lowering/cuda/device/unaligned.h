// Vectors that begin anywhere in a tensor or lie partly outside of it, from accesses that begin where memory is aligned. An access that has
// some element of the tensor does not leave the memory around it; what it brings beside the wanted elements is dropped.
#pragma once

#include "memory.h"

namespace tw {

#if defined(__CUDACC__)

/// `index` is aligned, and some of the elements lie in the tensor; the others may have any value.
template<int N, class T> __device__ __forceinline__ vec<T, N> load_inside(const T *p, int64 index, int64) { return load<N>(p, index); }

/// The wanted words begin `Distance` words later where `moves`.
template<int Distance, int Words> __device__ __forceinline__ void move_words(uint32 (&word)[Words], bool moves) {
#pragma unroll
    for (int i = 0; i + Distance < Words; i++) {
        word[i] = moves ? word[i + Distance] : word[i];
    }
}

/// `index` is any, and the tensor has `length` elements: aligned accesses on both sides of the first element, and what is wanted of them is
/// moved to the front. What lies outside of the tensor may have any value.
template<int N, class T, class Index, class Length> __device__ __forceinline__ vec<T, N> load_anywhere(const T *p, Index index, Length length) {
    constexpr int size = static_cast<int>(sizeof(T)), bytes = size * N, access = bytes < 16 ? bytes : 16, each = access / size;
    constexpr int words = (bytes + access) / 4;
    static_assert(bytes % 8 == 0, "whole words");
    const auto behind = static_cast<uint32>(reinterpret_cast<size_t>(p + index)) % access;  // bytes behind an aligned place
    const Index begin = index - static_cast<int>(behind / size);
    uint32 word[words] = {};
#pragma unroll
    for (int i = 0; i < words * 4 / access; i++) {
        if (begin + i * each > -each && begin + i * each < length) {
            const vec<T, each> part = load<each>(p, begin + i * each);
            memcpy(word + i * access / 4, &part, access);
        }
    }
    if constexpr (access == 16) {
        move_words<2>(word, (behind & 8) != 0);
    }
    move_words<1>(word, (behind & 4) != 0);
    if constexpr (size < 4) {
#pragma unroll
        for (int i = 0; i + 1 < words; i++) {
            word[i] = __funnelshift_r(word[i], word[i + 1], behind % 4 * 8);
        }
    }
    vec<T, N> result;
    memcpy(&result, word, bytes);
    return result;
}

#else

/// One by one: the emulation allows no access outside of a tensor.
template<int N, class P> vec<typename P::value_type, N> load_anywhere(const P &p, int64 index, int64 length) {
    vec<typename P::value_type, N> result = {};
    for (int i = 0; i < N; i++) {
        if (index + i >= 0 && index + i < length) {
            result[i] = p[index + i];
        }
    }
    return result;
}
template<int N, class P> vec<typename P::value_type, N> load_inside(const P &p, int64 index, int64 length) {
    return index >= 0 && index + N <= length ? load<N>(p, index) : load_anywhere<N>(p, index, length);
}

#endif

}  // namespace tw
