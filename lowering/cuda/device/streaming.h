// Two products joined by an online softmax, for warpgroups that consume pipelines of keys and values (async_copy.h). Tiles are swizzled by
// 128 bytes: chunks of 64 columns, one after another. Scores and sums lie in registers as the matrix unit leaves them (multiply.h):
// scores[block of 8 columns][upper and lower 8 rows][pair].
#pragma once

#include "atomic.h"
#include "tensor_core.h"
#include "warp.h"

namespace tw {

template<class T> __device__ __forceinline__ uint32 pair_of(float low, float high);
template<> __device__ __forceinline__ uint32 pair_of<bfloat16>(float low, float high) { return bfloat16x2_of(low, high); }
template<> __device__ __forceinline__ uint32 pair_of<half>(float low, float high) { return half2_of(low, high); }

#if defined(__CUDACC__)

/// 2^x; weights below 2^-126 of the largest are 0.
__device__ __forceinline__ float weight_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// The descriptor of what lies `bytes` behind.
__device__ __forceinline__ uint64 moved(uint64 descriptor, int bytes) {
    return (descriptor & 0xffffffff00000000ULL) | (static_cast<uint32>(descriptor) + static_cast<uint32>(bytes >> 4));
}
template<class T> __device__ __forceinline__ vec<T, 2> shared_pair(const unsigned char *place) { return load_words<Access::cached, 2>(reinterpret_cast<const T *>(place)); }
/// Exponentials are computed here, while products are under way: ptxas moves the wait for those up to the start of its basic block, which
/// this branch, never taken, ends behind the exponentials.
__device__ __forceinline__ void stream_overlap(const float (&total)[2]) {
    if (total[0] + total[1] < 0.0F) {
        asm volatile("nanosleep.u32 1;");
    }
}
/// scores = 64 rows times the transposed tile of keys, Steps times 16 deep; under way on return. Chunks of rows are RowTile high.
template<class T, int Steps, int RowTile, int Blocks>
__device__ __forceinline__ void multiply_keys(float (&scores)[Blocks][2][2], shared<T> rows, shared<T> keys) {
    const uint64 left = matrix_descriptor(bytes_of(rows), 16, 1024), right = matrix_descriptor(bytes_of(keys), 16, 1024);
    multiply_fence();
#pragma unroll
    for (int k = 0; k < Steps; k++) {
        warpgroup_multiply<T, Blocks * 8, 0, 0>::run(reinterpret_cast<float (&)[Blocks * 4]>(scores), moved(left, k / 4 * (RowTile * 128) + k % 4 * 32),
                                                     moved(right, k / 4 * (Blocks * 8 * 128) + k % 4 * 32), k > 0);
    }
    multiply_commit();
}
/// sums += weights times the tile of values; under way on return.
template<class T, int Groups, int Steps>
__device__ __forceinline__ void multiply_values(fragment<1, 1, Groups, 8> &sums, const uint32 (&weights)[Steps][4], shared<T> values) {
    const uint64 right = matrix_descriptor(bytes_of(values), Steps * 16 * 128, 1024);
    multiply_fence();
#pragma unroll
    for (int k = 0; k < Steps; k++) {
        warpgroup_multiply_registers<T, Groups * 32, 1>::run(reinterpret_cast<float (&)[Groups * 16]>(sums), weights[k], moved(right, k * 2048), true);
    }
    multiply_commit();
}
__device__ __forceinline__ void arrive_named(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

/// Warpgroups multiply in turn: while one does, the others compute. Named barrier 1 + w is the turn of warpgroup w.
template<int Warpgroups> __device__ __forceinline__ void turns_begin() {
    if (thread_rank() / 128 == Warpgroups - 1) {
        arrive_named(1, 256);
    }
}
template<int Warpgroups> __device__ __forceinline__ void turn_wait() { sync_named(1 + thread_rank() / 128, 256); }
template<int Warpgroups> __device__ __forceinline__ void turn_pass() { arrive_named(1 + (thread_rank() / 128 + 1) % Warpgroups, 256); }
template<int Warpgroups> __device__ __forceinline__ void turns_end() {
    if (thread_rank() / 128 == 0) {
        sync_named(1, 256);
    }
}

#else

inline float weight_exp2(float x) { return approximate_exp2(x); }
inline void stream_overlap(const float (&)[2]) {}
template<class T> vec<T, 2> shared_pair(unsigned char *place) {
    host::runtime->touch_shared(place, 2 * sizeof(T), host::SharedAccess::read);
    return load_words<Access::cached, 2>(reinterpret_cast<const T *>(place));
}
inline float chunked_element(const unsigned char *tile, int tile_rows, int row, int column, bool is_half) {
    const int offset = column / 64 * tile_rows * 128 + row * 128 + ((column % 64 / 8) ^ (row % 8)) * 16 + column % 8 * 2;
    host::runtime->touch_shared(tile + offset, 2, host::SharedAccess::read);
    uint16 bits = 0;
    std::memcpy(&bits, tile + offset, 2);
    return is_half ? float_of(half{bits}) : float_of(bfloat16{bits});
}
template<class T, int Steps, int RowTile, int Blocks> void multiply_keys(float (&scores)[Blocks][2][2], shared<T> rows, shared<T> keys) {
    const int t = thread_rank() % 128;
    for (int x = 0; x < Blocks * 4; ++x) {
        const int row = t / 32 * 16 + t % 32 / 4 + 8 * (x / 2 % 2), column = x / 4 * 8 + t % 4 * 2 + x % 2;
        float sum = 0;
        for (int k = 0; k < Steps * 16; ++k) {
            sum += chunked_element(bytes_of(rows), RowTile, row, k, same<T, half>::value) *
                   chunked_element(bytes_of(keys), Blocks * 8, column, k, same<T, half>::value);
        }
        scores[x / 4][x / 2 % 2][x % 2] = sum;
    }
}
template<class T, int Groups, int Steps>
void multiply_values(fragment<1, 1, Groups, 8> &sums, const uint32 (&weights)[Steps][4], shared<T> values) {
    const int t = thread_rank() % 128;
    float *flat = &sums[0][0][0][0][0];
    for (int k = 0; k < Steps; ++k) {
        float weight[2][16];  // this thread's rows, from the four lanes that share them
        for (int x = 0; x < 16; ++x) {
            const uint32 word = shuffle_word(weights[k][x / 4], x % 4, 4);
            for (int e = 0; e < 2; ++e) {
                const uint16 bits = static_cast<uint16>(e == 0 ? word & 0xffffU : word >> 16);
                weight[x / 4 % 2][x / 8 * 8 + x % 4 * 2 + e] = same<T, half>::value ? float_of(half{bits}) : float_of(bfloat16{bits});
            }
        }
        for (int x = 0; x < Groups * 16; ++x) {
            const int column = x / 4 * 8 + t % 4 * 2 + x % 2;
            for (int i = 0; i < 16; ++i) {
                flat[x] += weight[x / 2 % 2][i] * chunked_element(bytes_of(values), Steps * 16, k * 16 + i, column, same<T, half>::value);
            }
        }
    }
}
template<int Warpgroups> void turns_begin() {}
template<int Warpgroups> void turn_wait() {}
template<int Warpgroups> void turn_pass() {}
template<int Warpgroups> void turns_end() {}

#endif

/// The next piece of work: a block's first is its own, others come from a counter that all blocks share.
template<class Counter> __device__ __forceinline__ void take_piece(shared<int32> piece, Counter counter, int round, int own, int blocks) {
    piece[0] = round == 0 ? own : atomicAdd(address(counter, 0), 1) + blocks;
}
/// Nothing was summed yet.
template<int Groups>
__device__ __forceinline__ void stream_begin(fragment<1, 1, Groups, 8> &sums, float (&maximum)[2], float (&total)[2]) {
#pragma unroll
    for (int i = 0; i < Groups * 16; i++) {
        sums[0][0][i / 16][i / 8 % 2][i % 8] = 0.0F;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        maximum[h] = float_of(0xff800000U);
        total[h] = 0.0F;
    }
}
/// This thread's places of a tile of `Rows` rows, in chunks of `Swizzle` bytes that are permuted by as much; without, all rows are one.
template<int Swizzle, int Rows, int Blocks, class Registers, class T>
__device__ __forceinline__ void load_scores(Registers (&to)[Blocks][2], shared<T> tile) {
    const int thread = thread_rank(), row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < Blocks; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            constexpr int chunk = Swizzle > 0 ? Swizzle : Blocks * 8 * static_cast<int>(sizeof(T));
            const int column = (i * 8 + thread % 4 * 2) * static_cast<int>(sizeof(T));
            int place = column % chunk + (Swizzle > 0 ? (row + h * 8) * Swizzle : 0);
            place ^= (Swizzle > 0 ? place >> 7 & (Swizzle / 16 - 1) : 0) << 4;
            const vec<T, 2> pair = shared_pair<T>(bytes_of(tile) + column / chunk * (Rows * chunk) + place);
            to[i][h][0] = pair[0];
            to[i][h][1] = pair[1];
        }
    }
}
/// The iteration's slot may be filled again.
template<int Stages> __device__ __forceinline__ void stream_release(shared<uint64> barriers, int iteration) {
    if (is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration);
    }
}
/// What another block has summed of these Rows rows and its part of the keys: each thread adds its places of it.
template<int Rows, int Columns, int Groups, class Sums, class Statistics>
__device__ __forceinline__ void merge_part(fragment<1, 1, Groups, 8> &sums, float (&maximum)[2], float (&total)[2], Sums part_sums, Statistics part_rows,
                                           int piece, float scale) {
    const int thread = thread_rank();
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + h * 8;
        if (row >= Rows) {
            continue;
        }
        const int64 place = static_cast<int64>(piece) * Rows + row;
        const float part_maximum = part_rows[place * 2], largest = fmaxf(maximum[h], part_maximum);
        const float origin = largest == float_of(0xff800000U) ? 0.0F : largest * scale;
        const float old = weight_exp2(fma(maximum[h], scale, -origin)), fresh = weight_exp2(fma(part_maximum, scale, -origin));
        maximum[h] = largest;
        total[h] = fma(total[h], old, part_rows[place * 2 + 1] * fresh);
#pragma unroll
        for (int x = 0; x < Groups * 8; x += 4) {
            const vec<float, 4> part = load<4>(part_sums, place * Columns + x / 8 * 32 + thread % 4 * 8 + x % 8);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float &sum = sums[0][0][x / 8][h][x % 8 + i];
                sum = fma(sum, old, part[i] * fresh);
            }
        }
    }
}
/// The same of another block of the cluster, whose shared memory holds it.
template<int Rows, int Columns, int Groups>
__device__ __forceinline__ void merge_peer(fragment<1, 1, Groups, 8> &sums, float (&maximum)[2], float (&total)[2], shared<float> part_sums, shared<float> part_rows,
                                           int rank, float scale) {
    merge_part<Rows, Columns>(sums, maximum, total, peer(part_sums, rank), peer(part_rows, rank), 0, scale);
}
/// All warpgroups are done with the tiles of keys, where this block's part of the sums is to lie.
template<int Warpgroups> __device__ __forceinline__ void stream_share() { sync_named(15, Warpgroups * 128); }
/// scores become exp2(scale * (score - maximum of the row so far)), which `total` sums; `decay` is what earlier exponentials shrink by. A row
/// that had nothing but -inf so far counts from 0.
template<int Blocks>
__device__ __forceinline__ void stream_softmax(float (&scores)[Blocks][2][2], float (&maximum)[2], float (&total)[2], float (&decay)[2], float scale) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float largest = maximum[h];
#pragma unroll
        for (int i = 0; i < Blocks; i++) {
            largest = fmaxf(largest, fmaxf(scores[i][h][0], scores[i][h][1]));
        }
        largest = fmaxf(largest, shuffle_xor(largest, 1));
        largest = fmaxf(largest, shuffle_xor(largest, 2));
        const float origin = largest == float_of(0xff800000U) ? 0.0F : largest * scale;
        decay[h] = weight_exp2(fma(maximum[h], scale, -origin));
        maximum[h] = largest;
        float sum = total[h] * decay[h];
#pragma unroll
        for (int i = 0; i < Blocks; i++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                scores[i][h][e] = weight_exp2(fma(scores[i][h][e], scale, -origin));
                sum += scores[i][h][e];
            }
        }
        total[h] = sum;
    }
}
template<int Groups> __device__ __forceinline__ void rescale_sums(fragment<1, 1, Groups, 8> &sums, const float (&decay)[2]) {
    float(&raw)[Groups * 16] = reinterpret_cast<float(&)[Groups * 16]>(sums);
#pragma unroll
    for (int i = 0; i < Groups * 16; i++) {
        raw[i] *= decay[i / 2 % 2];
    }
}
/// Scores in the element type, as the matrix unit takes its left operand from registers.
template<class T, int Steps, int Blocks>
__device__ __forceinline__ void pack_weights(uint32 (&weights)[Steps][4], const float (&scores)[Blocks][2][2]) {
#pragma unroll
    for (int k = 0; k < Steps; k++) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float(&pair)[2] = scores[2 * k + r / 2][r % 2];
            weights[k][r] = pair_of<T>(pair[0], pair[1]);
        }
    }
}
/// Totals of whole rows; columns of the sums are gathered as by gather_columns().
template<int Groups> __device__ __forceinline__ void stream_end(fragment<1, 1, Groups, 8> &sums, float (&total)[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        total[h] += shuffle_xor(total[h], 1);
        total[h] += shuffle_xor(total[h], 2);
    }
    gather_columns(sums);
}

}  // namespace tw
