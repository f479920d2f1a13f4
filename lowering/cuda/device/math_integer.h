// Integer primitives: arithmetic wraps in the type's own width, division by zero yields 0, shifts out of range shift everything out.
#pragma once

#include "types.h"

namespace tw {

template<class T> __device__ __forceinline__ T wrap(uint64 value) {
    return static_cast<T>(static_cast<typename unsigned_of<T>::type>(value));
}
template<class T> __device__ __forceinline__ T add(T a, T b) { return wrap<T>(static_cast<uint64>(a) + static_cast<uint64>(b)); }
template<class T> __device__ __forceinline__ T sub(T a, T b) { return wrap<T>(static_cast<uint64>(a) - static_cast<uint64>(b)); }
template<class T> __device__ __forceinline__ T mul(T a, T b) { return wrap<T>(static_cast<uint64>(a) * static_cast<uint64>(b)); }
template<class T> __device__ __forceinline__ T neg(T a) { return wrap<T>(0 - static_cast<uint64>(a)); }
template<class T> __device__ __forceinline__ T abs(T a) { return is_signed<T>::value && a < T(0) ? neg(a) : a; }

/// C's division; 0 where b is 0.
template<class T> __device__ __forceinline__ T div_trunc(T a, T b) {
    if (b == T(0)) {
        return T(0);
    }
    return is_signed<T>::value && b == static_cast<T>(-1) ? neg(a) : static_cast<T>(a / b);
}
/// C's remainder; 0 where b is 0.
template<class T> __device__ __forceinline__ T fmod(T a, T b) {
    if (b == T(0) || (is_signed<T>::value && b == static_cast<T>(-1))) {
        return T(0);
    }
    return static_cast<T>(a % b);
}
/// Python's %; 0 where b is 0.
template<class T> __device__ __forceinline__ T remainder(T a, T b) {
    const T rest = fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
}
/// Python's //; 0 where b is 0.
template<class T> __device__ __forceinline__ T div_floor(T a, T b) {
    const T quotient = div_trunc(a, b);
    const T rest = fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(quotient - T(1)) : quotient;
}
/// x to the power y by squaring, wrapping. Negative powers are 0 but for x = 1 and x = -1.
template<class T> __device__ inline T pow(T x, T y) {
    if (y < T(0)) {
        if (x == T(1)) {
            return T(1);
        }
        if (is_signed<T>::value && x == static_cast<T>(-1)) {
            return (y & T(1)) != 0 ? x : T(1);
        }
        return T(0);
    }
    T result = T(1);
    while (y != T(0)) {
        if ((y & T(1)) != 0) {
            result = mul(result, x);
        }
        y = static_cast<T>(y >> 1);
        x = mul(x, x);
    }
    return result;
}

template<class T> __device__ __forceinline__ T shift_left(T a, T b) {
    if (b < T(0) || static_cast<uint64>(b) >= sizeof(T) * 8) {
        return T(0);
    }
    return wrap<T>(static_cast<uint64>(a) << static_cast<int>(b));
}
/// Keeps the sign.
template<class T> __device__ __forceinline__ T shift_right(T a, T b) {
    constexpr int most = static_cast<int>(sizeof(T)) * 8 - 1;
    if (b < T(0) || static_cast<uint64>(b) > most) {
        return is_signed<T>::value ? static_cast<T>(a >> most) : T(0);
    }
    return static_cast<T>(a >> static_cast<int>(b));
}
template<class T> __device__ __forceinline__ T bitwise_and(T a, T b) { return static_cast<T>(a & b); }
template<class T> __device__ __forceinline__ T bitwise_or(T a, T b) { return static_cast<T>(a | b); }
template<class T> __device__ __forceinline__ T bitwise_xor(T a, T b) { return static_cast<T>(a ^ b); }
template<class T> __device__ __forceinline__ T bitwise_not(T a) { return static_cast<T>(~a); }
__device__ __forceinline__ bool bitwise_not(bool a) { return !a; }

template<class T> __device__ __forceinline__ T minimum(T a, T b) { return b < a ? b : a; }
template<class T> __device__ __forceinline__ T maximum(T a, T b) { return a < b ? b : a; }
template<class T> __device__ __forceinline__ T floor(T a) { return a; }
template<class T> __device__ __forceinline__ T ceil(T a) { return a; }
template<class T> __device__ __forceinline__ T trunc(T a) { return a; }
template<class T> __device__ __forceinline__ T round(T a) { return a; }
template<class T> __device__ __forceinline__ bool signbit(T a) { return is_signed<T>::value && a < T(0); }
template<class T> __device__ __forceinline__ bool isnan(T) { return false; }
template<class T> __device__ __forceinline__ bool isinf(T) { return false; }
template<class T> __device__ __forceinline__ bool isfinite(T) { return true; }

}  // namespace tw
