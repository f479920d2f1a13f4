// The hardware's instructions as the host has them; the counterpart of ../intrinsics.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

#include "../types.h"
#include "checked.h"
#include "runtime.h"

#define __noinline__  // after the standard headers, which name the attribute

inline tw::host::Dimensions threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace tw {

inline constexpr unsigned full_warp = 0xffffffffU;

template<class T> using in = global_pointer<const T>;
template<class T> using out = global_pointer<T>;
template<class T> using inout = global_pointer<T>;
template<class T> using shared = shared_pointer<T>;

inline int thread_rank() { return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)); }
inline int lane_id() { return thread_rank() % 32; }

inline host::Place place_of(const std::source_location &at) { return {at.file_name(), static_cast<int>(at.line())}; }
inline void begin_launch() {}
inline void sync_block(std::source_location at = std::source_location::current()) { host::runtime->sync_block(place_of(at)); }
inline void sync_warp(std::source_location at = std::source_location::current()) { host::runtime->sync_warp(place_of(at)); }
inline void sync_named(int id, int threads, std::source_location at = std::source_location::current()) {
    host::runtime->sync_named(id, threads, place_of(at));
}
inline void fence_device() {}
inline int cluster_rank() { return host::runtime->cluster_rank(); }
inline void sync_cluster(std::source_location at = std::source_location::current()) { host::runtime->sync_cluster(place_of(at)); }
inline void meet_cluster(std::source_location at = std::source_location::current()) { host::runtime->sync_cluster(place_of(at)); }
/// The same array in the shared memory of block `rank` of the cluster.
template<class T> shared_pointer<T> peer(const shared_pointer<T> &array, int rank) {
    T *base = reinterpret_cast<T *>(host::runtime->peer_shared(array.base, rank));
    return {base, base - (array.base - array.begin), base + (array.end - array.base)};
}
template<class T, int N> shared_pointer<T> peer(const shared_array<T, N> &array, int rank) { return peer(array.pointer(), rank); }

using tensor_map = host::TensorMap;

inline uint32 bits_of(float x) { return std::bit_cast<uint32>(x); }
inline float float_of(uint32 bits) { return std::bit_cast<float>(bits); }
inline uint64 bits_of(double x) { return std::bit_cast<uint64>(x); }
inline double double_of(uint64 bits) { return std::bit_cast<double>(bits); }

inline int32 count_bits(uint32 word) { return std::popcount(word); }
inline int32 lowest_bit(uint64 word) { return std::countr_zero(word); }

inline uint32 permute_bytes(uint32 low, uint32 high, uint32 selector) {
    const uint64 bytes = static_cast<uint64>(high) << 32 | low;
    uint32 result = 0;
    for (int i = 0; i < 4; ++i) {
        result |= static_cast<uint32>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    }
    return result;
}
inline bfloat16 bfloat16_of(float x) {
    const uint32 bits = bits_of(x);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return {0x7fff};
    }
    return {static_cast<uint16>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}
inline float float_of(bfloat16 x) { return float_of(static_cast<uint32>(x.bits) << 16); }
inline half half_of(float x) { return std::bit_cast<half>(static_cast<_Float16>(x)); }
inline float float_of(half x) { return static_cast<float>(std::bit_cast<_Float16>(x)); }
inline float rounded_to_bfloat16(float x) { return float_of(bfloat16_of(x)); }
inline uint32 bfloat16x2_of(float low, float high) {
    return bfloat16_of(low).bits | static_cast<uint32>(bfloat16_of(high).bits) << 16;
}
inline uint32 half2_of(float low, float high) { return half_of(low).bits | static_cast<uint32>(half_of(high).bits) << 16; }

inline float min_nan(float a, float b) {
    if (a != a || b != b) {
        return float_of(0x7fffffffU);
    }
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
inline float max_nan(float a, float b) {
    if (a != a || b != b) {
        return float_of(0x7fffffffU);
    }
    return a > b || (a == b && !std::signbit(a)) ? a : b;
}
template<class T, class Combine> uint32 combine_pair(uint32 a, uint32 b, Combine combine) {
    const auto one = [&](int shift) {
        const float result = combine(float_of(T{static_cast<uint16>(a >> shift)}), float_of(T{static_cast<uint16>(b >> shift)}));
        if constexpr (same<T, half>::value) {
            return static_cast<uint32>(half_of(result).bits) << shift;
        } else {
            return static_cast<uint32>(bfloat16_of(result).bits) << shift;
        }
    };
    return one(0) | one(16);
}
template<class T> uint32 min_nan_pair(T, uint32 a, uint32 b) { return combine_pair<T>(a, b, min_nan); }
template<class T> uint32 max_nan_pair(T, uint32 a, uint32 b) { return combine_pair<T>(a, b, max_nan); }
template<class T> uint32 add_pair(T, uint32 a, uint32 b) {
    return combine_pair<T>(a, b, [](float x, float y) { return x + y; });
}
template<class T> uint32 subtract_pair(T, uint32 a, uint32 b) {
    return combine_pair<T>(a, b, [](float x, float y) { return x - y; });
}
inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return ::fma(a, b, c); }

/// By bisection's safe start and Newton's steps on erfc, which keeps its precision near 1.
inline double erfinv(double x) {
    if (!(x > -1.0 && x < 1.0)) {
        return x == 1.0 ? INFINITY : x == -1.0 ? -INFINITY : NAN;
    }
    const double magnitude = std::fabs(x);
    const double log_term = std::log1p(-magnitude * magnitude);
    const double centre = 2.0 / (3.14159265358979323846 * 0.147) + log_term / 2;
    double y = std::sqrt(std::sqrt(centre * centre - log_term / 0.147) - centre);  // Winitzki 2008
    for (int step = 0; step < 4; step++) {
        const double error = magnitude < 0.5 ? std::erf(y) - magnitude : (1.0 - magnitude) - std::erfc(y);
        const double slope = 1.12837916709551257390 * std::exp(-y * y);
        const double newton = error / slope;
        y -= newton / (1.0 + y * newton);  // Halley's correction
    }
    return std::copysign(y, x);
}
inline float erfinv(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }

inline void keep_word(uint32 &) {}
inline float approximate_exp2(float x) { return ::exp2f(x); }
inline float approximate_exp2_flushed(float x) { return ::exp2f(x); }
inline float approximate_log2(float x) { return ::log2f(x); }
inline float approximate_tanh(float x) { return ::tanhf(x); }
inline float approximate_reciprocal(float x) { return 1.0F / x; }
inline float approximate_reciprocal_flushed(float x) { return 1.0F / x; }
inline float approximate_rsqrt(float x) { return 1.0F / ::sqrtf(x); }

inline uint32 shuffle_word(uint32 word, int lane, int width, std::source_location at = std::source_location::current()) {
    const int self = lane_id();
    return host::runtime->exchange(word, self / width * width + (lane & (width - 1)), place_of(at));
}
inline uint32 shuffle_xor_word(uint32 word, int mask, std::source_location at = std::source_location::current()) {
    return host::runtime->exchange(word, lane_id() ^ mask, place_of(at));
}
inline uint32 shuffle_up_word(uint32 word, int distance, int width, std::source_location at = std::source_location::current()) {
    const int self = lane_id();
    return host::runtime->exchange(word, self % width >= distance ? self - distance : self, place_of(at));
}
inline uint32 shuffle_down_word(uint32 word, int distance, int width, std::source_location at = std::source_location::current()) {
    const int self = lane_id();
    return host::runtime->exchange(word, self % width + distance < width ? self + distance : self, place_of(at));
}
inline uint32 ballot(bool predicate, std::source_location at = std::source_location::current()) {
    return host::runtime->ballot(predicate, place_of(at));
}

template<class Word> Word load_streaming(const Word *p) { return *p; }
template<class Word> void store_streaming(Word *p, Word v) { *p = v; }

template<class T> constexpr bool adds_neighbours() { return same<T, float>::value || same<T, half>::value || same<T, bfloat16>::value; }
template<class T, int N> void add_neighbours(T *p, const vec<T, N> &v) {
    for (int i = 0; i < N; ++i) {
        p[i] = static_cast<T>(p[i] + v[i]);
    }
}

}  // namespace tw

// Threads run one after another between switches, so plain updates are atomic.
inline void __syncthreads(std::source_location at = std::source_location::current()) { tw::sync_block(at); }
inline void __syncwarp(unsigned = tw::full_warp, std::source_location at = std::source_location::current()) { tw::sync_warp(at); }
template<class T> T atomicAdd(T *p, T value) {
    const T old = *p;
    *p = old + value;
    return old;
}
template<class T> T atomicMax(T *p, T value) {
    const T old = *p;
    *p = old < value ? value : old;
    return old;
}
template<class T> T atomicMin(T *p, T value) {
    const T old = *p;
    *p = value < old ? value : old;
    return old;
}
template<class T> T atomicCAS(T *p, T expected, T wanted) {
    const T old = *p;
    if (std::memcmp(&old, &expected, sizeof(T)) == 0) {
        *p = wanted;
    }
    return old;
}
template<class T> T atomicExch(T *p, T value) {
    const T old = *p;
    *p = value;
    return old;
}
