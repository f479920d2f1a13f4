// Collectives of the 32 lanes of a warp. Every lane takes part.
#pragma once

#include "types.h"

namespace tw {

/// Values of any trivially copyable type travel between lanes as 32-bit words.
template<class T> struct word_image {
    static constexpr int count = (static_cast<int>(sizeof(T)) + 3) / 4;
    uint32 words[count];
    __device__ __forceinline__ static word_image of(const T &value) {
        word_image image{};
        memcpy(image.words, &value, sizeof(T));
        return image;
    }
    __device__ __forceinline__ T value() const {
        T result;
        memcpy(&result, words, sizeof(T));
        return result;
    }
};

/// A value whose words are those that `exchange` gives for the words of `value`.
template<class T, class Exchange> __device__ __forceinline__ T exchange_words(const T &value, Exchange exchange) {
    auto image = word_image<T>::of(value);
#pragma unroll
    for (int i = 0; i < image.count; i++) {
        image.words[i] = exchange(image.words[i]);
    }
    return image.value();
}

/// The value of `lane`, counted within groups of `width` lanes.
template<class T> __device__ __forceinline__ T shuffle(T value, int lane, int width = 32) {
    return exchange_words(value, [&](uint32 word) { return shuffle_word(word, lane, width); });
}
template<class T> __device__ __forceinline__ T shuffle_xor(T value, int mask) {
    return exchange_words(value, [&](uint32 word) { return shuffle_xor_word(word, mask); });
}
/// The value of the lane `distance` below; a lane that has none keeps its own.
template<class T> __device__ __forceinline__ T shuffle_up(T value, int distance, int width = 32) {
    return exchange_words(value, [&](uint32 word) { return shuffle_up_word(word, distance, width); });
}
template<class T> __device__ __forceinline__ T shuffle_down(T value, int distance, int width = 32) {
    return exchange_words(value, [&](uint32 word) { return shuffle_down_word(word, distance, width); });
}

template<class Combine, class = void> struct is_symmetric { static constexpr bool value = false; };
template<class Combine> struct is_symmetric<Combine, decltype(static_cast<void>(Combine::symmetric))> {
    static constexpr bool value = Combine::symmetric;
};

/// combine() over the lanes whose numbers differ only in (lane / Stride) % Size, both powers of two with Size * Stride <= 32; every lane gets
/// the result, with the same bits. Terms are combined in the order of the lanes, so the combiner need not commute.
template<int Size, int Stride, class T, class Combine> __device__ __forceinline__ T warp_reduce_strided(T value, Combine combine) {
#pragma unroll
    for (int distance = Stride; distance < Size * Stride; distance *= 2) {
        const T other = shuffle_xor(value, distance);
        if (is_symmetric<Combine>::value) {
            value = combine(value, other);
        } else {
            const bool upper = (lane_id() & distance) != 0;
            value = upper ? combine(other, value) : combine(value, other);
        }
    }
    return value;
}

/// The same over groups of `Width` neighbouring lanes.
template<int Width = 32, class T, class Combine> __device__ __forceinline__ T warp_reduce(T value, Combine combine) {
    static_assert((Width & (Width - 1)) == 0 && Width <= 32, "a power of two up to 32");
    return warp_reduce_strided<Width, 1>(value, combine);
}

/// Inclusive scan over groups of `Width` neighbouring lanes, of those that stand `Stride` apart in them.
template<int Width = 32, int Stride = 1, class T, class Combine> __device__ __forceinline__ T warp_scan(T value, Combine combine) {
    const int place = lane_id() & (Width - 1);
#pragma unroll
    for (int distance = Stride; distance < Width; distance *= 2) {
        const T before = shuffle_up(value, distance, Width);
        if (place >= distance) {
            value = combine(before, value);
        }
    }
    return value;
}

}  // namespace tw
