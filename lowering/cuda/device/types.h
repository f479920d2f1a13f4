// Element types as tensors store them, and short vectors of them.
#pragma once

namespace tw {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;

/// Storage only: kernels convert to float, compute, and convert back.
struct half {
    uint16 bits;
};
struct bfloat16 {
    uint16 bits;
};
/// With infinities like float16; and without, NaN only where all bits but the sign are set.
struct float8_e5m2 {
    uint8 bits;
};
struct float8_e4m3 {
    uint8 bits;
};

/// N values, N a power of two, aligned so that one access of up to 16 bytes moves as many as fit.
template<class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) vec {
    T data[N];
    __device__ T &operator[](int i) { return data[i]; }
    __device__ const T &operator[](int i) const { return data[i]; }
};

/// Pairs of 16-bit floats, a word each.
template<int N> struct pair_words {
    uint32 word[N / 2];
};

/// Four words: what one wide access moves.
struct alignas(16) words4 {
    uint32 x, y, z, w;
};

template<bool Condition, class Then, class Else> struct choose { using type = Then; };
template<class Then, class Else> struct choose<false, Then, Else> { using type = Else; };

/// As what an element lies in memory.
template<class T> struct stored { using type = T; };
template<> struct stored<float8_e5m2> { using type = uint8; };
template<> struct stored<float8_e4m3> { using type = uint8; };

template<class T> struct is_float { static constexpr bool value = false; };
template<> struct is_float<float> { static constexpr bool value = true; };
template<> struct is_float<double> { static constexpr bool value = true; };
template<> struct is_float<half> { static constexpr bool value = true; };
template<> struct is_float<bfloat16> { static constexpr bool value = true; };
template<> struct is_float<float8_e5m2> { static constexpr bool value = true; };
template<> struct is_float<float8_e4m3> { static constexpr bool value = true; };

template<class T> struct remove_const { using type = T; };
template<class T> struct remove_const<const T> { using type = T; };

/// Unsigned type of the same width: where integers wrap.
template<class T> struct unsigned_of {
    using type = typename choose<sizeof(T) == 1, uint8,
                                 typename choose<sizeof(T) == 2, uint16, typename choose<sizeof(T) == 4, uint32, uint64>::type>::type>::type;
};
template<class T> struct is_signed { static constexpr bool value = static_cast<T>(-1) < static_cast<T>(0); };
template<> struct is_signed<bool> { static constexpr bool value = false; };

template<class A, class B> struct same { static constexpr bool value = false; };
template<class A> struct same<A, A> { static constexpr bool value = true; };

}  // namespace tw
