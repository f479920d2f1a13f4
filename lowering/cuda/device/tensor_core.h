// Products of tiles in shared memory on the matrix unit, for warpgroups that consume a pipeline (async_copy.h).
// Tiles are 64 deep along K and swizzled by 128 bytes: along K, rows of 64 elements; along M or N, chunks of 64 by 64.
#pragma once

#include "async_copy.h"
#if defined(__CUDACC__)
#include "multiply.h"
#endif
#include "types.h"
#include "warp.h"

namespace tw {

inline constexpr int chunk_bytes = 64 * 64 * 2;  // 64 rows of 64 elements of two bytes

#if defined(__CUDACC__)

/// Of a tile swizzled by 128 bytes (PTX ISA, "Matrix descriptor"). Offsets in bytes.
__device__ __forceinline__ uint64 matrix_descriptor(const unsigned char *tile, int leading, int stride) {
    return ((shared_address(tile) & 0x3ffff) >> 4) | static_cast<uint64>(leading >> 4) << 16 | static_cast<uint64>(stride >> 4) << 32 | 1ULL << 62;
}
__device__ __forceinline__ void multiply_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template<int Pending> __device__ __forceinline__ void multiply_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }

/// sums[i] += A rows [64 * i, 64 * i + 64) times B, 64 deep; B is 64 by N. Returns with the products under way.
template<class T, int TransposeA, int TransposeB, int Rows, int Groups>
__device__ __forceinline__ void multiply_tiles(float (&sums)[Rows][Groups][2][8], shared<T> a, shared<T> b, bool accumulate) {
    constexpr int N = Groups * 32;
    multiply_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {  // 16 deep each
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const uint64 left = matrix_descriptor(bytes_of(a) + i * chunk_bytes + k * (TransposeA ? 2048 : 32), 16, 1024);
            const uint64 right = matrix_descriptor(bytes_of(b) + k * (TransposeB ? 2048 : 32), TransposeB ? chunk_bytes : 16, 1024);
            warpgroup_multiply<T, N, TransposeA, TransposeB>::run(reinterpret_cast<float (&)[N / 2]>(sums[i]), left, right, accumulate || k > 0);
        }
    }
    multiply_commit();
}
__device__ __forceinline__ bool is_first_of_warpgroup() { return thread_rank() % 128 == 0; }

#else

inline float tile_element(const unsigned char *tile, int transposed, int row, int k, bool is_half) {
    const int offset = transposed ? row / 64 * chunk_bytes + k * 128 + ((row % 64 / 8) ^ (k % 8)) * 16 + row % 8 * 2 : row * 128 + ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2;
    host::runtime->touch_shared(tile + offset, 2, host::SharedAccess::read);
    uint16 bits = 0;
    std::memcpy(&bits, tile + offset, 2);
    return is_half ? float_of(half{bits}) : float_of(bfloat16{bits});
}
template<class T, int TransposeA, int TransposeB, int Rows, int Groups>
void multiply_tiles(float (&sums)[Rows][Groups][2][8], shared<T> a, shared<T> b, bool accumulate) {
    const int t = thread_rank() % 128;
    float *flat = &sums[0][0][0][0];
    for (int i = 0; i < Rows; ++i) {
        for (int j = 0; j < Groups * 4; ++j) {
            for (int h = 0; h < 2; ++h) {
                for (int e = 0; e < 2; ++e) {
                    const int row = t / 32 * 16 + t % 32 / 4 + 8 * h, column = j * 8 + t % 4 * 2 + e;
                    float &sum = flat[i * Groups * 16 + j * 4 + h * 2 + e];
                    sum = accumulate ? sum : 0.0F;
                    for (int k = 0; k < 64; ++k) {
                        sum += tile_element(bytes_of(a) + i * chunk_bytes, TransposeA, row, k, same<T, half>::value) *
                               tile_element(bytes_of(b), TransposeB, column, k, same<T, half>::value);
                    }
                }
            }
        }
    }
}
template<int Pending> void multiply_wait() {}
inline bool is_first_of_warpgroup() {
    sync_named(8 + thread_rank() / 128, 128);  // all have read
    return thread_rank() % 128 == 0;
}

#endif

/// One step along K: waits for the iteration's slot, multiplies, and gives back the slot of the step before.
template<int Stages, class T, int TransposeA, int TransposeB, int Rows, int Groups>
__device__ __forceinline__ void multiply_step(float (&sums)[Rows][Groups][2][8], shared<T> a, shared<T> b, shared<uint64> barriers, int iteration,
                                              int step) {
    pipeline_wait<Stages>(barriers, iteration);
    multiply_tiles<T, TransposeA, TransposeB>(sums, a, b, step > 0);
    multiply_wait<1>();
    if (step > 0 && is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration - 1);
    }
}
/// In a group of four lanes, lane q gets columns 8q to 8q + 7 of each 32.
template<int Rows, int Groups> __device__ __forceinline__ void gather_columns(float (&sums)[Rows][Groups][2][8]) {
    const int lane = lane_id();
#pragma unroll
    for (int i = 0; i < Rows; i++) {
        float(&raw)[Groups * 16] = reinterpret_cast<float(&)[Groups * 16]>(sums[i]);
#pragma unroll
        for (int group = 0; group < Groups; group++) {
            float w[2][4][2];  // [half][block of 8 columns][pair]
#pragma unroll
            for (int x = 0; x < 16; x++) {
                w[x / 2 % 2][x / 4][x % 2] = raw[group * 16 + x];
            }
#pragma unroll
            for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
                for (int x = 0; x < 8; x++) {
                    const int half = x / 4, low = bit == 1 ? x / 2 % 2 * 2 : x / 2 % 2, e = x % 2;
                    float &first = w[half][low][e], &second = w[half][low + bit][e];
                    const bool upper = (lane & bit) != 0;
                    const float received = shuffle_xor(upper ? first : second, bit);
                    first = upper ? received : first;
                    second = upper ? second : received;
                }
            }
#pragma unroll
            for (int x = 0; x < 16; x++) {
                sums[i][group][x / 8][x % 8] = w[x / 8][x % 8 / 2][x % 2];
            }
        }
    }
}
/// After the last step: the sums are whole, the last slot is given back, and columns are gathered.
template<int Stages, int Rows, int Groups>
__device__ __forceinline__ void multiply_end(float (&sums)[Rows][Groups][2][8], shared<uint64> barriers, int iteration) {
    multiply_wait<0>();
    if (is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration);
    }
    gather_columns(sums);
}

}  // namespace tw
