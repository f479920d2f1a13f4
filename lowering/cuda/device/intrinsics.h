// The hardware, one instruction a function. host/intrinsics.h has the same names for the emulation.
#pragma once

#include "types.h"

namespace tw {

inline constexpr unsigned full_warp = 0xffffffffU;

// --- where a thread is -------------------------------------------------------------------------------------------------------------

/// Place of the thread in its block: blocks have one dimension.
__device__ __forceinline__ int thread_rank() {
    const int rank = static_cast<int>(threadIdx.x);
    __builtin_assume(rank >= 0);  // quotients then need no mending of signs
    return rank;
}
__device__ __forceinline__ int lane_id() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return static_cast<int>(lane);
}

__device__ __forceinline__ void sync_block() { __syncthreads(); }
__device__ __forceinline__ void sync_warp() { __syncwarp(); }
/// Barrier `id` (1 to 15) of `threads` threads, a multiple of 32.
__device__ __forceinline__ void sync_named(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ __forceinline__ void fence_device() { __threadfence(); }

/// Blocks of one cluster.
__device__ __forceinline__ int cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}
/// A barrier for all threads of the cluster, which also orders their accesses to each other's shared memory.
__device__ __forceinline__ void sync_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// All blocks of the cluster run: nothing that was written before is handed over.
__device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// The same array in the shared memory of block `rank` of the cluster, as a generic address.
template<class T> __device__ __forceinline__ T *peer(T *array, int rank) {
    T *result;
    asm("mapa.u64 %0, %1, %2;" : "=l"(result) : "l"(array), "r"(rank));
    return result;
}

/// The bulk tensor copy unit's descriptor: a kernel parameter, `const __grid_constant__ tw::tensor_map`.
struct alignas(64) tensor_map {
    uint64 opaque[16];
};

// --- bits --------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint32 bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float float_of(uint32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ uint64 bits_of(double x) { return static_cast<uint64>(__double_as_longlong(x)); }
__device__ __forceinline__ double double_of(uint64 bits) { return __longlong_as_double(static_cast<long long>(bits)); }

__device__ __forceinline__ int32 count_bits(uint32 word) { return __popc(word); }
/// The place of the lowest bit that is set; `word` is not 0.
__device__ __forceinline__ int32 lowest_bit(uint64 word) { return __ffsll(static_cast<long long>(word)) - 1; }

/// Four bytes of the eight in `low` and `high`, each picked by a digit of the selector, the last one first.
__device__ __forceinline__ uint32 permute_bytes(uint32 low, uint32 high, uint32 selector) { return __byte_perm(low, high, selector); }

__device__ __forceinline__ half half_of(float x) {
    half result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
}
__device__ __forceinline__ float float_of(half x) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
}
/// By the conversion of two: the one of a single float runs at a quarter of its rate.
__device__ __forceinline__ bfloat16 bfloat16_of(float x) {
    uint32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0F), "f"(x));
    return bfloat16{static_cast<uint16>(pair)};
}
__device__ __forceinline__ float float_of(bfloat16 x) { return __uint_as_float(static_cast<uint32>(x.bits) << 16); }
/// Two conversions in one instruction; `low` lands in the lower half.
__device__ __forceinline__ uint32 bfloat16x2_of(float low, float high) {
    uint32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}
__device__ __forceinline__ uint32 half2_of(float low, float high) {
    uint32 result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

/// The nearest bfloat16 as a float, without the slow conversion of a single value.
__device__ __forceinline__ float rounded_to_bfloat16(float x) {
    uint32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(x), "f"(0.0F));
    return __uint_as_float(result);
}

// --- arithmetic --------------------------------------------------------------------------------------------------------------------

/// NaN if either is; -0 is less than +0.
__device__ __forceinline__ float min_nan(float a, float b) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float max_nan(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
/// Two 16-bit floats at once, likewise. The first argument says of which type.
template<class T> __device__ __forceinline__ uint32 min_nan_pair(T, uint32 a, uint32 b) {
    uint32 result;
    if constexpr (same<T, half>::value) {
        asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    } else {
        asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    }
    return result;
}
template<class T> __device__ __forceinline__ uint32 max_nan_pair(T, uint32 a, uint32 b) {
    uint32 result;
    if constexpr (same<T, half>::value) {
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    } else {
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    }
    return result;
}
/// Sums and differences, each rounded to its own type: as if added as floats and rounded, of which bfloat16 has no single instruction
/// before sm_90.
template<class T> __device__ __forceinline__ uint32 add_pair(T, uint32 a, uint32 b) {
    uint32 result;
    if constexpr (same<T, half>::value) {
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    } else {
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(0x3F803F80U), "r"(b));
    }
    return result;
}
template<class T> __device__ __forceinline__ uint32 subtract_pair(T, uint32 a, uint32 b) {
    uint32 result;
    if constexpr (same<T, half>::value) {
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    } else {
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(0xBF80BF80U), "r"(a));
    }
    return result;
}
__device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ float erfinv(float x) { return ::erfinvf(x); }
__device__ __forceinline__ double erfinv(double x) { return ::erfinv(x); }

/// 2^x to 2 units in the last place.
__device__ __forceinline__ float approximate_exp2(float x) {
    float result;
    asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// The same, but results below 2^-126 become 0.
__device__ __forceinline__ float approximate_exp2_flushed(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// log2(x) to 2^-22 absolute between 0.5 and 2, relative elsewhere.
__device__ __forceinline__ float approximate_log2(float x) {
    float result;
    asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// tanh(x) to 2^-11 relative.
__device__ __forceinline__ float approximate_tanh(float x) {
    float result;
    asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// 1/x to 1 unit in the last place.
__device__ __forceinline__ float approximate_reciprocal(float x) {
    float result;
    asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// The same where neither number is tiny: below 2^-126 both are taken for 0.
__device__ __forceinline__ float approximate_reciprocal_flushed(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// 1/sqrt(x) to 2 units in the last place.
__device__ __forceinline__ float approximate_rsqrt(float x) {
    float result;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// --- lanes of a warp ---------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint32 shuffle_word(uint32 word, int lane, int width) { return __shfl_sync(full_warp, word, lane, width); }
__device__ __forceinline__ uint32 shuffle_xor_word(uint32 word, int mask) { return __shfl_xor_sync(full_warp, word, mask); }
__device__ __forceinline__ uint32 shuffle_up_word(uint32 word, int distance, int width) {
    return __shfl_up_sync(full_warp, word, distance, width);
}
__device__ __forceinline__ uint32 shuffle_down_word(uint32 word, int distance, int width) {
    return __shfl_down_sync(full_warp, word, distance, width);
}
__device__ __forceinline__ uint32 ballot(bool predicate) { return __ballot_sync(full_warp, predicate); }

/// From here on the launch sees what those before it have written; from its blocks' start on, the next one may start its own.
__device__ __forceinline__ void begin_launch() {
    __builtin_assume(static_cast<int>(blockIdx.x) >= 0);
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

/// The value stands in one register here.
__device__ __forceinline__ void keep_word(uint32 &word) { asm("" : "+r"(word)); }

// --- memory ------------------------------------------------------------------------------------------------------------------------

/// Kernel parameters. What `in` points to is written by nobody during the launch, what `out` points to is reached through it alone. `in` does not say
/// __restrict__: its loads would become ld.global.nc, which the compiler moves in front of griddepcontrol.wait, while the launch before still writes.
template<class T> using in = const T *;
template<class T> using out = T *__restrict__;
template<class T> using inout = T *;

/// Shared memory of a size known when compiling: `__shared__ tw::shared_array<float, 32> partial;`.
template<class T, int N> struct alignas(16) shared_array {
    T data[N];
    __device__ __forceinline__ T &operator[](int i) { return data[i]; }
    __device__ __forceinline__ const T &operator[](int i) const { return data[i]; }
    __device__ __forceinline__ T *operator+(int i) { return data + i; }
};
/// A part of the launch's dynamic shared memory.
template<class T> using shared = T *;
template<class T> __device__ __forceinline__ shared<T> dynamic_shared(int byte_offset, int elements) {
    extern __shared__ __align__(1024) unsigned char tilewright_dynamic_shared[];
    return reinterpret_cast<T *>(tilewright_dynamic_shared + byte_offset);
}
template<class T, int N> __device__ __forceinline__ T *peer(shared_array<T, N> &array, int rank) { return peer(array.data, rank); }
template<class T, int N> __device__ __forceinline__ T *address(shared_array<T, N> &array, int index) { return array.data + index; }
template<class T> __device__ __forceinline__ T *address(T *pointer, int64 index) { return pointer + index; }

/// Read once: kept out of the first cache and the first to leave the second.
__device__ __forceinline__ words4 load_streaming(const words4 *p) {
    words4 r;
    asm volatile("ld.global.L1::no_allocate.L2::evict_first.v4.b32 {%0, %1, %2, %3}, [%4];"
        : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return r;
}
__device__ __forceinline__ void store_streaming(words4 *p, words4 v) {
    asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ uint64 load_streaming(const uint64 *p) { return __ldcs(p); }
__device__ __forceinline__ uint32 load_streaming(const uint32 *p) { return __ldcs(p); }
__device__ __forceinline__ uint16 load_streaming(const uint16 *p) { return __ldcs(p); }
__device__ __forceinline__ uint8 load_streaming(const uint8 *p) { return __ldcs(p); }
template<class Word> __device__ __forceinline__ void store_streaming(Word *p, Word v) { __stcs(p, v); }


// --- atomic additions whose old values nobody wants --------------------------------------------------------------------------------

/// Whether one instruction adds to several neighbours in global memory, up to 16 bytes of them.
template<class T> __device__ constexpr bool adds_neighbours() {
#if __CUDA_ARCH__ >= 900
    return same<T, float>::value || same<T, half>::value || same<T, bfloat16>::value;
#else
    return false;
#endif
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void add_neighbours(float *p, const vec<float, 2> &v) {
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(v[0]), "f"(v[1]) : "memory");
}
__device__ __forceinline__ void add_neighbours(float *p, const vec<float, 4> &v) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}
__device__ __forceinline__ void add_neighbours(half *p, const vec<half, 1> &v) {
    asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(p), "h"(v[0].bits) : "memory");
}
__device__ __forceinline__ void add_neighbours(bfloat16 *p, const vec<bfloat16, 1> &v) {
    asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(p), "h"(v[0].bits) : "memory");
}
template<int N> __device__ __forceinline__ void add_neighbours(half *p, const vec<half, N> &v) {
    pair_words<N> w;
    memcpy(&w, &v, sizeof(w));
    if constexpr (N == 8) {
        asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.word[0]), "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3]) : "memory");
    } else if constexpr (N == 4) {
        asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %2};" ::"l"(p), "r"(w.word[0]), "r"(w.word[1]) : "memory");
    } else {
        asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(p), "r"(w.word[0]) : "memory");
    }
}
template<int N> __device__ __forceinline__ void add_neighbours(bfloat16 *p, const vec<bfloat16, N> &v) {
    pair_words<N> w;
    memcpy(&w, &v, sizeof(w));
    if constexpr (N == 8) {
        asm volatile("red.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.word[0]), "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3]) : "memory");
    } else if constexpr (N == 4) {
        asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" ::"l"(p), "r"(w.word[0]), "r"(w.word[1]) : "memory");
    } else {
        asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(p), "r"(w.word[0]) : "memory");
    }
}
#endif

}  // namespace tw
