// Accesses of several neighbouring elements in as few instructions as 16-byte words allow. The address of element `index` must be a
// multiple of the access (at most 16 bytes).
#pragma once

#include "types.h"

namespace tw {

/// The widest word that moves `Bytes` bytes in whole words.
template<int Bytes> struct word_for {
    using type = typename choose<Bytes % 16 == 0, words4,
                                 typename choose<Bytes % 8 == 0, uint64,
                                                 typename choose<Bytes % 4 == 0, uint32,
                                                                 typename choose<Bytes % 2 == 0, uint16, uint8>::type>::type>::type>::type;
};

template<class To, class From> __device__ __forceinline__ To reinterpret_bits(const From &from) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

/// Two values of 16 bits share a register from here on, where the compiler would give each its own.
template<class T, int N> __device__ __forceinline__ void pack(vec<T, N> &value) {
    static_assert(sizeof(T) * N % 4 == 0, "whole words");
    struct alignas(alignof(vec<T, N>)) Words {
        uint32 word[sizeof(T) * N / 4];
    };
    Words words = reinterpret_bits<Words>(value);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T)) * N / 4; i++) {
        keep_word(words.word[i]);
    }
    value = reinterpret_bits<vec<T, N>>(words);
}

enum class Access { cached, streaming };

/// vec<T, N> as the widest words that hold it.
template<class T, int N> struct alignas(alignof(vec<T, N>)) Packed {
    using Word = typename word_for<static_cast<int>(sizeof(T)) * N>::type;
    static constexpr int words = static_cast<int>(sizeof(T)) * N / static_cast<int>(sizeof(Word));
    Word word[words];
};

template<Access Mode, int N, class T> __device__ __forceinline__ vec<T, N> load_words(const T *p) {
    using Word = typename Packed<T, N>::Word;
    Packed<T, N> packed;
#pragma unroll
    for (int i = 0; i < packed.words; i++) {
        const Word *word = reinterpret_cast<const Word *>(p) + i;
        packed.word[i] = Mode == Access::streaming ? load_streaming(word) : *word;
    }
    return reinterpret_bits<vec<T, N>>(packed);
}
template<Access Mode, class T, int N> __device__ __forceinline__ void store_words(T *p, const vec<T, N> &value) {
    using Word = typename Packed<T, N>::Word;
    const Packed<T, N> packed = reinterpret_bits<Packed<T, N>>(value);
#pragma unroll
    for (int i = 0; i < packed.words; i++) {
        if (Mode == Access::streaming) {
            store_streaming(reinterpret_cast<Word *>(p) + i, packed.word[i]);
        } else {
            reinterpret_cast<Word *>(p)[i] = packed.word[i];
        }
    }
}

#if defined(__CUDACC__)
/// `N` elements from `index` on.
template<int N, class T> __device__ __forceinline__ vec<T, N> load(const T *p, int64 index) { return load_words<Access::cached, N>(p + index); }
template<int N, class T, int Size> __device__ __forceinline__ vec<T, N> load(const shared_array<T, Size> &array, int index) {
    return load_words<Access::cached, N>(array.data + index);
}
template<int N, class T> __device__ __forceinline__ vec<T, N> load_once(const T *p, int64 index) {
    return load_words<Access::streaming, N>(p + index);
}
template<int N, class T> __device__ __forceinline__ void store(T *p, int64 index, const vec<T, N> &value) {
    store_words<Access::cached>(p + index, value);
}
template<int N, class T, int Size> __device__ __forceinline__ void store(shared_array<T, Size> &array, int index, const vec<T, N> &value) {
    store_words<Access::cached>(array.data + index, value);
}
/// Not read again soon: the first to leave the caches.
template<int N, class T> __device__ __forceinline__ void store_once(T *p, int64 index, const vec<T, N> &value) {
    store_words<Access::streaming>(p + index, value);
}
/// Where `N` elements begin that one access changes.
template<int N, class T> __device__ __forceinline__ T *range_address(T *p, int64 index) { return p + index; }
#else
template<int N, class P> typename P::value_type *range_address(const P &p, int64 index) { return p.template write_range<typename P::value_type>(index, N); }
template<int N, class P> vec<typename P::value_type, N> load(const P &p, int64 index) {
    return load_words<Access::cached, N>(static_cast<const typename P::value_type *>(p.template read_range<typename P::value_type>(index, N)));
}
template<int N, class P> vec<typename P::value_type, N> load_once(const P &p, int64 index) { return load<N>(p, index); }
template<int N, class P> void store(const P &p, int64 index, const vec<typename P::value_type, N> &value) {
    store_words<Access::cached>(p.template write_range<typename P::value_type>(index, N), value);
}
template<int N, class P> void store_once(const P &p, int64 index, const vec<typename P::value_type, N> &value) { store<N>(p, index, value); }
#endif

}  // namespace tw
