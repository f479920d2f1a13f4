// Keys: unsigned integers that stand in the order in which PyTorch sorts values. Both zeros have one key, and every NaN, the greatest.
#pragma once

#include "types.h"

namespace tw {

template<class Bits> struct float_layout;  ///< where the infinity of a float of that width stands
template<> struct float_layout<uint32> { static constexpr uint32 infinity = 0x7f800000U; };
template<> struct float_layout<uint64> { static constexpr uint64 infinity = 0x7ff0000000000000ULL; };

template<class Bits> struct key_facts {
    static constexpr Bits sign = static_cast<Bits>(static_cast<Bits>(1) << (8 * sizeof(Bits) - 1));
    static constexpr Bits nan = static_cast<Bits>(~static_cast<Bits>(0));
    static constexpr Bits zero = sign;
};

template<class Bits> __device__ __forceinline__ Bits key_of_float(Bits bits, Bits infinity) {
    using facts = key_facts<Bits>;
    const Bits magnitude = bits & static_cast<Bits>(~facts::sign);
    if (magnitude > infinity) {
        return facts::nan;
    }
    if (magnitude == 0) {
        return facts::zero;
    }
    return static_cast<Bits>((bits & facts::sign) != 0 ? ~bits : bits | facts::sign);
}
template<class T> __device__ __forceinline__ typename unsigned_of<T>::type ascending_key(T x) {
    using Key = typename unsigned_of<T>::type;
    return is_signed<T>::value ? static_cast<Key>(static_cast<Key>(x) ^ key_facts<Key>::sign) : static_cast<Key>(x);
}
__device__ __forceinline__ uint32 ascending_key(float x) { return key_of_float(bits_of(x), float_layout<uint32>::infinity); }
__device__ __forceinline__ uint64 ascending_key(double x) { return key_of_float(bits_of(x), float_layout<uint64>::infinity); }
__device__ __forceinline__ uint16 ascending_key(half x) { return key_of_float<uint16>(x.bits, 0x7c00); }
__device__ __forceinline__ uint16 ascending_key(bfloat16 x) { return key_of_float<uint16>(x.bits, 0x7f80); }

template<class T> __device__ __forceinline__ typename unsigned_of<T>::type sort_key(T x, bool descending) {
    const typename unsigned_of<T>::type key = ascending_key(x);
    return static_cast<typename unsigned_of<T>::type>(descending ? ~key : key);
}

template<class T> struct value_of_key {
    template<class Key> static __device__ __forceinline__ T get(Key key) {
        return static_cast<T>(is_signed<T>::value ? static_cast<Key>(key ^ key_facts<Key>::sign) : key);
    }
};
template<class Bits> __device__ __forceinline__ Bits float_of_key(Bits key) {
    return static_cast<Bits>((key & key_facts<Bits>::sign) != 0 ? key ^ key_facts<Bits>::sign : ~key);
}
template<> struct value_of_key<float> {
    static __device__ __forceinline__ float get(uint32 key) { return float_of(float_of_key(key)); }
};
template<> struct value_of_key<double> {
    static __device__ __forceinline__ double get(uint64 key) { return double_of(float_of_key(key)); }
};
template<> struct value_of_key<half> {
    static __device__ __forceinline__ half get(uint16 key) { return {float_of_key(key)}; }
};
template<> struct value_of_key<bfloat16> {
    static __device__ __forceinline__ bfloat16 get(uint16 key) { return {float_of_key(key)}; }
};
/// The value that has this key; of a float whose key is_shared, one of those that have it.
template<class T, class Key> __device__ __forceinline__ T sorted_value(Key key, bool descending) {
    return value_of_key<T>::get(static_cast<Key>(descending ? ~key : key));
}
/// Whether several floats have this key: zeros and NaNs.
template<class Key> __device__ __forceinline__ bool is_shared_key(Key key, bool descending) {
    const Key ascending = static_cast<Key>(descending ? ~key : key);
    return ascending == key_facts<Key>::zero || ascending == key_facts<Key>::nan;
}

}  // namespace tw
