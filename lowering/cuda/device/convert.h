// Conversions between element types, as PyTorch's CUDA kernels make them.
#pragma once

#include "float8.h"
#include "types.h"

namespace tw {

/// Both 16-bit types are read and written through float, as in PyTorch, also from double and 64-bit integers.
template<class To, class From> struct conversion {
    static __device__ __forceinline__ To of(From x) { return static_cast<To>(x); }
};
/// Floats become narrow integers through a wide one, so that a value out of range wraps.
template<class To, class From> __device__ __forceinline__ To integer_of(From x) {
    using Wide = typename choose<sizeof(To) == 8 && !is_signed<To>::value, uint64, int64>::type;
    if (same<Wide, uint64>::value && x < From(0)) {
        return static_cast<To>(static_cast<int64>(x));
    }
    if (sizeof(To) == 4 && is_signed<To>::value) {
        return static_cast<To>(static_cast<int32>(x));
    }
    return static_cast<To>(static_cast<Wide>(x));
}
template<class To> struct conversion<To, float> {
    static __device__ __forceinline__ To of(float x) { return integer_of<To>(x); }
};
template<class To> struct conversion<To, double> {
    static __device__ __forceinline__ To of(double x) { return integer_of<To>(x); }
};
template<> struct conversion<float, float> {
    static __device__ __forceinline__ float of(float x) { return x; }
};
template<> struct conversion<double, double> {
    static __device__ __forceinline__ double of(double x) { return x; }
};
template<> struct conversion<float, double> {
    static __device__ __forceinline__ float of(double x) { return static_cast<float>(x); }
};
template<> struct conversion<double, float> {
    static __device__ __forceinline__ double of(float x) { return static_cast<double>(x); }
};
/// Small integers by arithmetic, at twice the rate of the conversion instruction or more: 2^23 + x has x in its last bits.
template<> struct conversion<float, int8> {
    static __device__ __forceinline__ float of(int8 x) { return float_of(0x4B000000U | (static_cast<uint8>(x) ^ 0x80U)) - 8388736.0F; }
};
template<> struct conversion<float, uint8> {
    static __device__ __forceinline__ float of(uint8 x) { return float_of(0x4B000000U | x) - 8388608.0F; }
};
template<> struct conversion<bool, float> {
    static __device__ __forceinline__ bool of(float x) { return x != 0.0F; }
};
template<> struct conversion<bool, double> {
    static __device__ __forceinline__ bool of(double x) { return x != 0.0; }
};
template<class From> struct conversion<half, From> {
    static __device__ __forceinline__ half of(From x) { return half_of(conversion<float, From>::of(x)); }
};
template<class From> struct conversion<bfloat16, From> {
    static __device__ __forceinline__ bfloat16 of(From x) { return bfloat16_of(conversion<float, From>::of(x)); }
};
template<class To> struct conversion<To, half> {
    static __device__ __forceinline__ To of(half x) { return conversion<To, float>::of(float_of(x)); }
};
template<class To> struct conversion<To, bfloat16> {
    static __device__ __forceinline__ To of(bfloat16 x) { return conversion<To, float>::of(float_of(x)); }
};
template<class To> struct conversion<To, float8_e4m3> {
    static __device__ __forceinline__ To of(float8_e4m3 x) { return conversion<To, float>::of(float_of(x)); }
};
template<class To> struct conversion<To, float8_e5m2> {
    static __device__ __forceinline__ To of(float8_e5m2 x) { return conversion<To, float>::of(float_of(x)); }
};
template<> struct conversion<half, float> {
    static __device__ __forceinline__ half of(float x) { return half_of(x); }
};
template<> struct conversion<half, double> {
    static __device__ __forceinline__ half of(double x) { return half_of(static_cast<float>(x)); }
};
template<> struct conversion<bfloat16, float> {
    static __device__ __forceinline__ bfloat16 of(float x) { return bfloat16_of(x); }
};
template<> struct conversion<bfloat16, double> {
    static __device__ __forceinline__ bfloat16 of(double x) { return bfloat16_of(static_cast<float>(x)); }
};
template<> struct conversion<half, half> {
    static __device__ __forceinline__ half of(half x) { return x; }
};
template<> struct conversion<bfloat16, bfloat16> {
    static __device__ __forceinline__ bfloat16 of(bfloat16 x) { return x; }
};
template<> struct conversion<half, bfloat16> {
    static __device__ __forceinline__ half of(bfloat16 x) { return half_of(float_of(x)); }
};
template<> struct conversion<bfloat16, half> {
    static __device__ __forceinline__ bfloat16 of(half x) { return bfloat16_of(float_of(x)); }
};

template<class To, class From> __device__ __forceinline__ To convert(From x) { return conversion<To, From>::of(x); }

/// The same for a vector; float to a 16-bit type takes one instruction for two elements.
template<class To, class From, int N> struct vector_conversion {
    static __device__ __forceinline__ vec<To, N> of(const vec<From, N> &x) {
        vec<To, N> result;
#pragma unroll
        for (int i = 0; i < N; i++) {
            result[i] = convert<To>(x[i]);
        }
        return result;
    }
};
__device__ __forceinline__ uint32 pair_of(bfloat16, float low, float high) { return bfloat16x2_of(low, high); }
__device__ __forceinline__ uint32 pair_of(half, float low, float high) { return half2_of(low, high); }

template<class To, int N> struct conversion_by_pairs {
    static __device__ __forceinline__ vec<To, N> of(const vec<float, N> &x) {
        vec<To, N> result;
#pragma unroll
        for (int i = 0; i + 1 < N; i += 2) {
            const uint32 pair = pair_of(To{}, x[i], x[i + 1]);
            result[i].bits = static_cast<uint16>(pair);
            result[i + 1].bits = static_cast<uint16>(pair >> 16);
        }
        if (N == 1) {
            result[0] = convert<To>(x[0]);
        }
        return result;
    }
};
template<int N> struct vector_conversion<bfloat16, float, N> : conversion_by_pairs<bfloat16, N> {};
template<int N> struct vector_conversion<half, float, N> : conversion_by_pairs<half, N> {};
template<class To, class From, int N> __device__ __forceinline__ vec<To, N> convert_vector(const vec<From, N> &x) {
    return vector_conversion<To, From, N>::of(x);
}

/// Lane by lane, two at once.
template<class T, int N, class Combine>
__device__ __forceinline__ vec<T, N> combine_pairs(const vec<T, N> &a, const vec<T, N> &b, Combine combine) {
    pair_words<N> x = reinterpret_bits<pair_words<N>>(a);
    const pair_words<N> y = reinterpret_bits<pair_words<N>>(b);
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        x.word[i] = combine(x.word[i], y.word[i]);
    }
    return reinterpret_bits<vec<T, N>>(x);
}
/// Rounded to the lanes' own type.
template<class T, int N> __device__ __forceinline__ vec<T, N> add_vectors(const vec<T, N> &a, const vec<T, N> &b) {
    return combine_pairs(a, b, [](uint32 x, uint32 y) { return add_pair(T{}, x, y); });
}
template<class T, int N> __device__ __forceinline__ vec<T, N> subtract_vectors(const vec<T, N> &a, const vec<T, N> &b) {
    return combine_pairs(a, b, [](uint32 x, uint32 y) { return subtract_pair(T{}, x, y); });
}

/// One element of a vector. A byte goes from its word to the last bits of 2^23 in one instruction.
template<class To, class From, int N, bool Words> struct lane_conversion {
    static __device__ __forceinline__ To of(const vec<From, N> &x, int lane) { return convert<To>(x[lane]); }
};
template<int N, uint32 Flipped> struct byte_lane {
    template<class From> static __device__ __forceinline__ float of(const vec<From, N> &x, int lane) {
        struct Packed {
            uint32 word[N / 4];
        };
        const uint32 word = reinterpret_bits<Packed>(x).word[lane / 4] ^ Flipped;
        return float_of(permute_bytes(word, 0x4B000000U, 0x7440U | static_cast<uint32>(lane % 4))) - (Flipped ? 8388736.0F : 8388608.0F);
    }
};
template<int N> struct lane_conversion<float, int8, N, true> : byte_lane<N, 0x80808080U> {};
template<int N> struct lane_conversion<float, uint8, N, true> : byte_lane<N, 0> {};
template<class To, class From, int N> __device__ __forceinline__ To convert_lane(const vec<From, N> &x, int lane) {
    return lane_conversion<To, From, N, N % 4 == 0>::of(x, lane);
}

}  // namespace tw
