// Floats of 8 bits: their conversions, as PyTorch makes them.
#pragma once

#include "types.h"

namespace tw {

/// The layout is float16's less its last byte.
__device__ __forceinline__ float float8_e5m2_value(uint8 byte) { return float_of(half{static_cast<uint16>(byte << 8)}); }
/// As a float16 the exponent is too small by 8.
__device__ __forceinline__ float float8_e4m3_value(uint8 byte) {
    const float value = float_of(half{static_cast<uint16>((byte & 0x80) << 8 | (byte & 0x7f) << 7)}) * 256.0F;
    return (byte & 0x7f) == 0x7f ? float_of(0x7fffffffU) : value;
}
__device__ __forceinline__ float float_of(float8_e5m2 x) { return float8_e5m2_value(x.bits); }
__device__ __forceinline__ float float_of(float8_e4m3 x) { return float8_e4m3_value(x.bits); }

/// The magnitude to nearest, ties to even, where it is in range.
template<int Mantissa, int Bias> __device__ __forceinline__ uint32 float8_magnitude(uint32 magnitude) {
    constexpr int dropped = 23 - Mantissa;
    if (magnitude < static_cast<uint32>(128 - Bias) << 23) {
        // Added to a number whose last place is the smallest value, a float is rounded to it.
        constexpr uint32 scale = static_cast<uint32>(127 + 23 + 1 - Bias - Mantissa) << 23;
        return bits_of(float_of(magnitude) + float_of(scale)) - scale;
    }
    return ((magnitude + ((1U << (dropped - 1)) - 1) + (magnitude >> dropped & 1)) >> dropped) - (static_cast<uint32>(127 - Bias) << Mantissa);
}
__device__ __forceinline__ uint8 float8_e4m3_bits(float x) {
    const uint32 bits = bits_of(x), magnitude = bits & 0x7fffffffU, sign = bits >> 24 & 0x80U;
    return static_cast<uint8>(sign | (magnitude >= 1087U << 20 ? 0x7fU : float8_magnitude<3, 7>(magnitude)));  // 480 and more: NaN
}
__device__ __forceinline__ uint8 float8_e5m2_bits(float x) {
    const uint32 bits = bits_of(x), magnitude = bits & 0x7fffffffU, sign = bits >> 24 & 0x80U;
    const uint32 large = magnitude > 0x7f800000U ? 0x7fU : 0x7cU;
    return static_cast<uint8>(sign | (magnitude >= 143U << 23 ? large : float8_magnitude<2, 15>(magnitude)));
}

}  // namespace tw
