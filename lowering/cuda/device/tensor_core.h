// Products of tiles in shared memory on the matrix unit, for warpgroups that consume a pipeline (async_copy.h).
// Tiles are 128 bytes deep along K and swizzled by as many: rows along K; of 16-bit elements also chunks of 64 by 64 along M or N.
#pragma once

#include "async_copy.h"
#include "float8.h"
#if defined(__CUDACC__)
#include "multiply.h"
#include "multiply_float8.h"
#include "multiply_int8.h"
#include "multiply_registers.h"
#include "multiply_tf32.h"
#endif
#include "memory.h"
#include "types.h"
#include "warp.h"

namespace tw {

inline constexpr int chunk_bytes = 64 * 128;  // 64 rows

/// Sums of a warpgroup's tile as a thread holds them, by chunks of 64 rows, strips and blocks of columns, halves of 8 rows, neighbours. The
/// unit leaves 2 neighbours in blocks of 8 columns; gather_columns makes them 8 in blocks of 32.
template<class Sum, int Rows, int Strips, int Blocks, int Width> using fragment_of = Sum[Rows][Strips][Blocks][2][Width];
template<int Rows, int Strips, int Blocks, int Width> using fragment = fragment_of<float, Rows, Strips, Blocks, Width>;

#if defined(__CUDACC__)

/// Of a tile swizzled by 128 bytes (PTX ISA, "Matrix descriptor"). Offsets in bytes.
__device__ __forceinline__ uint64 matrix_descriptor(const unsigned char *tile, int leading, int stride) {
    return ((shared_address(tile) & 0x3ffff) >> 4) | static_cast<uint64>(leading >> 4) << 16 | static_cast<uint64>(stride >> 4) << 32 | 1ULL << 62;
}
__device__ __forceinline__ void multiply_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template<int Pending> __device__ __forceinline__ void multiply_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }

/// One instruction. Of elements of 16 bits, both of one type, either operand may be transposed.
template<class A, class B, int N, int TransposeA, int TransposeB> struct tile_multiply : warpgroup_multiply_rows<A, B, N> {
    static_assert(!TransposeA && !TransposeB, "rows run along K");
};
template<int N, int TransposeA, int TransposeB> struct tile_multiply<half, half, N, TransposeA, TransposeB> : warpgroup_multiply<half, N, TransposeA, TransposeB> {};
template<int N, int TransposeA, int TransposeB>
struct tile_multiply<bfloat16, bfloat16, N, TransposeA, TransposeB> : warpgroup_multiply<bfloat16, N, TransposeA, TransposeB> {};

/// sums[i] += A rows [64 * i, 64 * i + 64) times B, 128 bytes deep; B has N rows. Returns with the products under way.
template<class A, class B, int TransposeA, int TransposeB, class Sum, int Rows, int Strips, int Blocks, int Width>
__device__ __forceinline__ void multiply_tiles(fragment_of<Sum, Rows, Strips, Blocks, Width> &sums, shared<typename stored<A>::type> a,
                                               shared<typename stored<B>::type> b, bool accumulate) {
    constexpr int N = Strips * Blocks * Width * 4;
    multiply_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {  // 32 bytes deep each
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const uint64 left = matrix_descriptor(bytes_of(a) + i * chunk_bytes + k * (TransposeA ? 2048 : 32), 16, 1024);
            const uint64 right = matrix_descriptor(bytes_of(b) + k * (TransposeB ? 2048 : 32), TransposeB ? chunk_bytes : 16, 1024);
            tile_multiply<A, B, N, TransposeA, TransposeB>::run(reinterpret_cast<Sum (&)[N / 2]>(sums[i]), left, right, accumulate || k > 0);
        }
    }
}
/// The same for float8, of whose sums the unit keeps 14 bits or so: each step is summed apart, then added in float32.
template<class A, class B, int TransposeA, int TransposeB, int Rows, int Strips, int Blocks, int Width>
__device__ __forceinline__ void multiply_apart(fragment<Rows, Strips, Blocks, Width> &sums, shared<typename stored<A>::type> a, shared<typename stored<B>::type> b,
                                               bool accumulate) {
#pragma unroll
    for (int i = 0; i < Rows; i++) {
        fragment<1, Strips, Blocks, Width> step;
        multiply_tiles<A, B, TransposeA, TransposeB>(step, a + i * (chunk_bytes / static_cast<int>(sizeof(A))), b, false);
        multiply_commit();
        multiply_wait<0>();
        float(&whole)[Strips * Blocks * 2 * Width] = reinterpret_cast<float(&)[Strips * Blocks * 2 * Width]>(sums[i]);
        const float(&part)[Strips * Blocks * 2 * Width] = reinterpret_cast<const float(&)[Strips * Blocks * 2 * Width]>(step);
#pragma unroll
        for (int x = 0; x < Strips * Blocks * 2 * Width; x++) {
            whole[x] = accumulate ? whole[x] + part[x] : part[x];
        }
    }
}
/// The same with A in registers, as each thread computed it: [chunk][16 deep][8 deep][8 rows][2 neighbours].
template<class T, int TransposeB, int Rows, int Strips, int Blocks, int Width>
__device__ __forceinline__ void multiply_registers(fragment<Rows, Strips, Blocks, Width> &sums, const T (&a)[Rows][4][2][2][2], shared<T> b, bool accumulate) {
    constexpr int N = Strips * Blocks * Width * 4;
    uint32 words[Rows][4][4];
#pragma unroll
    for (int i = 0; i < Rows * 16; i++) {
        const T(&pair)[2] = a[i / 16][i / 4 % 4][i / 2 % 2][i % 2];
        words[i / 16][i / 4 % 4][i % 4] = pair[0].bits | static_cast<uint32>(pair[1].bits) << 16;
    }
    multiply_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const uint64 right = matrix_descriptor(bytes_of(b) + k * (TransposeB ? 2048 : 32), TransposeB ? chunk_bytes : 16, 1024);
            warpgroup_multiply_registers<T, N, TransposeB>::run(reinterpret_cast<float (&)[N / 2]>(sums[i]), words[i][k], right, accumulate || k > 0);
        }
    }
}
__device__ __forceinline__ bool is_first_of_warpgroup() { return thread_rank() % 128 == 0; }

#else

/// What the unit makes of an element: of a float the bits of tf32.
template<class T> float multiplied(T element) { return float_of(element); }
inline int32 multiplied(int8 element) { return element; }
inline int32 multiplied(uint8 element) { return element; }
inline float multiplied(float element) { return float_of(bits_of(element) & ~0x1fffU); }

template<class T> auto tile_element(const unsigned char *tile, int transposed, int row, int k) {
    constexpr int bytes = sizeof(T), piece = 16 / bytes;
    const int before = static_cast<int>(reinterpret_cast<uint64>(tile) >> 7 & 7);  // rows of its swizzled atom: the unit goes by addresses
    const int offset = transposed ? row / 64 * chunk_bytes + k * 128 + ((row % 64 / 8) ^ (k % 8)) * 16 + row % 8 * 2
                                  : row * 128 + ((k / piece) ^ ((row + before) % 8)) * 16 + k % piece * bytes;
    host::runtime->touch_shared(tile + offset, bytes, host::SharedAccess::read);
    T element{};
    std::memcpy(&element, tile + offset, bytes);
    return multiplied(element);
}
inline float multiply_add(float a, float b, float sum) { return sum + a * b; }
inline int32 multiply_add(int32 a, int32 b, int32 sum) { return static_cast<int32>(static_cast<uint32>(sum) + static_cast<uint32>(a * b)); }

template<class A, class B, int TransposeA, int TransposeB, class Sum, int Rows, int Strips, int Blocks, int Width>
void multiply_tiles(fragment_of<Sum, Rows, Strips, Blocks, Width> &sums, shared<typename stored<A>::type> a, shared<typename stored<B>::type> b, bool accumulate) {
    constexpr int columns = Strips * Blocks * Width * 4, depth = 128 / sizeof(A);
    static_assert(sizeof(A) == sizeof(B) && (sizeof(A) == 2 || (!TransposeA && !TransposeB)), "rows of other than 16 bits run along K");
    const int t = thread_rank() % 128;
    Sum *flat = &sums[0][0][0][0][0];
    for (int i = 0; i < Rows; ++i) {
        for (int j = 0; j < columns / 8; ++j) {
            for (int h = 0; h < 2; ++h) {
                for (int e = 0; e < 2; ++e) {
                    const int row = t / 32 * 16 + t % 32 / 4 + 8 * h, column = j * 8 + t % 4 * 2 + e;
                    Sum &sum = flat[i * columns / 2 + j * 4 + h * 2 + e];
                    sum = accumulate ? sum : Sum(0);
                    for (int k = 0; k < depth; ++k) {
                        sum = multiply_add(tile_element<A>(bytes_of(a) + i * chunk_bytes, TransposeA, row, k), tile_element<B>(bytes_of(b), TransposeB, column, k), sum);
                    }
                }
            }
        }
    }
}
template<class A, class B, int TransposeA, int TransposeB, int Rows, int Strips, int Blocks, int Width>
void multiply_apart(fragment<Rows, Strips, Blocks, Width> &sums, shared<typename stored<A>::type> a, shared<typename stored<B>::type> b, bool accumulate) {
    multiply_tiles<A, B, TransposeA, TransposeB>(sums, a, b, accumulate);
}
template<class T, int TransposeB, int Rows, int Strips, int Blocks, int Width>
void multiply_registers(fragment<Rows, Strips, Blocks, Width> &sums, const T (&a)[Rows][4][2][2][2], shared<T> b, bool accumulate) {
    constexpr int columns = Strips * Blocks * Width * 4;
    float *flat = &sums[0][0][0][0][0];
    for (int i = 0; i < Rows; ++i) {
        for (int h = 0; h < 2; ++h) {
            float row[64];  // of A: each lane of a group of four has a quarter
            for (int k = 0; k < 64; ++k) {
                const uint32 bits = shuffle_word(a[i][k / 16][k / 8 % 2][h][k % 2].bits, lane_id() / 4 * 4 + k % 8 / 2, 32);
                row[k] = float_of(T{static_cast<uint16>(bits)});
            }
            for (int x = 0; x < columns / 4; ++x) {
                float &sum = flat[i * columns / 2 + x / 2 * 4 + h * 2 + x % 2];
                sum = accumulate ? sum : 0.0F;
                for (int k = 0; k < 64; ++k) {
                    sum += row[k] * tile_element<T>(bytes_of(b), TransposeB, x / 2 * 8 + lane_id() % 4 * 2 + x % 2, k);
                }
            }
        }
    }
}
inline void multiply_commit() {}
template<int Pending> void multiply_wait() {}
inline bool is_first_of_warpgroup() {
    sync_named(8 + thread_rank() / 128, 128);  // all have read
    return thread_rank() % 128 == 0;
}

#endif

/// The products of this step are under way: when those of the step before are done, its slot is given back.
template<int Stages> __device__ __forceinline__ void multiply_next(shared<uint64> barriers, int iteration, int step) {
    multiply_commit();
    multiply_wait<1>();
    if (step > 0 && is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration - 1);
    }
}
/// Before a thread computes what it multiplies in this step: the products of the step before are done, and its slot is given back.
template<int Stages> __device__ __forceinline__ void multiply_previous(shared<uint64> barriers, int iteration, int step) {
    multiply_wait<0>();
    if (step > 0 && is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration - 1);
    }
}
/// Warpgroups multiply one after another, each a part of the round's tile: one waits for its turn, and passes it on when all of its steps are
/// under way. `turns` has two barriers for each.
__device__ __forceinline__ void turn_wait(shared<uint64> turns, int turn, int round) {
    barrier_wait(barrier_at(turns, turn), (turn == 0 ? round + 1 : round) % 2);
}
template<int Groups> __device__ __forceinline__ void turn_pass(shared<uint64> turns, int turn) {
    if (is_first_of_warpgroup()) {
        barrier_arrive(barrier_at(turns, (turn + 1) % Groups));
    }
}
/// After the last step: the sums are whole, the last slot is given back.
template<int Stages> __device__ __forceinline__ void multiply_end(shared<uint64> barriers, int iteration) {
    multiply_wait<0>();
    if (is_first_of_warpgroup()) {
        pipeline_release<Stages>(barriers, iteration);
    }
}
/// The blocks of a cluster have summed parts of the terms of one tile: each gets its share of the tile's columns, added up in the blocks'
/// order. `partials` is [sums of a thread / 4][threads][4], where nobody reads any more.
template<int Parts, int Warpgroups, class Sum, int Rows, int Strips, int Blocks, int OwnStrips>
__device__ __forceinline__ void cluster_sum(const fragment_of<Sum, Rows, Strips, Blocks, 2> &sums, fragment_of<Sum, Rows, OwnStrips, Blocks, 2> &whole,
                                            shared<typename stored<Sum>::type> partials) {
    constexpr int threads = Warpgroups * 128, own = OwnStrips * Blocks;
    const int thread = thread_rank();
    sync_named(15, threads);  // the other warpgroups have multiplied
#pragma unroll
    for (int i = 0; i < Rows * Strips * Blocks; i++) {
        const Sum(&from)[2][2] = sums[i / (Strips * Blocks)][i / Blocks % Strips][i % Blocks];
        store<4>(partials, (i * threads + thread) * 4, vec<Sum, 4>{{from[0][0], from[0][1], from[1][0], from[1][1]}});
    }
    sync_cluster();
    const int first = cluster_rank() * own;
#pragma unroll
    for (int i = 0; i < Rows * own; i++) {
        Sum(&to)[2][2] = whole[i / own][i / Blocks % OwnStrips][i % Blocks];
        const int place = ((i / own * Strips * Blocks + first + i % own) * threads + thread) * 4;
#pragma unroll
        for (int part = 0; part < Parts; part++) {
            const vec<Sum, 4> sum = load<4>(peer(partials, part), place);
#pragma unroll
            for (int x = 0; x < 4; x++) {
                to[x / 2][x % 2] = part == 0 ? sum[x] : to[x / 2][x % 2] + sum[x];
            }
        }
    }
    sync_cluster();  // until then the others read here
}
/// In a group of four lanes, lane q gets columns 8q to 8q + 7 of each 32.
template<class Sum, int Rows, int Strips, int Blocks> __device__ __forceinline__ void gather_columns(fragment_of<Sum, Rows, Strips, Blocks, 8> &sums) {
    constexpr int Groups = Strips * Blocks;
    const int lane = lane_id();
#pragma unroll
    for (int i = 0; i < Rows; i++) {
        Sum(&raw)[Groups * 16] = reinterpret_cast<Sum(&)[Groups * 16]>(sums[i]);
#pragma unroll
        for (int group = 0; group < Groups; group++) {
            Sum w[2][4][2];  // [half][block of 8 columns][pair]
#pragma unroll
            for (int x = 0; x < 16; x++) {
                w[x / 2 % 2][x / 4][x % 2] = raw[group * 16 + x];
            }
#pragma unroll
            for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
                for (int x = 0; x < 8; x++) {
                    const int half = x / 4, low = bit == 1 ? x / 2 % 2 * 2 : x / 2 % 2, e = x % 2;
                    Sum &first = w[half][low][e], &second = w[half][low + bit][e];
                    const bool upper = (lane & bit) != 0;
                    const Sum received = shuffle_xor(upper ? first : second, bit);
                    first = upper ? received : first;
                    second = upper ? second : received;
                }
            }
#pragma unroll
            for (int x = 0; x < 16; x++) {
                raw[group * 16 + x] = w[x / 8][x % 8 / 2][x % 2];
            }
        }
    }
}

/// A warpgroup stores its 64 rows of `Columns` neighbours from shared memory, permuted as by the copy unit, to a tensor of channels, pixels and
/// lines. The first row is a pixel of a line; `places` rows further begins the next, and those beyond the tensor's `width` are left out.
template<int Columns, class To, class T>
__device__ __forceinline__ void store_lines(const To &to, shared<T> from, int column, int columns, int pixel, int line, int places, int width, int lines,
                                            int pixel_stride, int line_stride) {
    constexpr int bytes = static_cast<int>(sizeof(T)), piece = 16 / bytes, pieces = Columns / piece, at_once = 128 / pieces,
                  rows_apart = 128 / (Columns * bytes);
    const int thread = thread_rank() % 128, turn = thread % pieces, first = column + turn * piece;
#pragma unroll
    for (int i = 0; i < 64; i += at_once) {
        const int row = i + thread / pieces, place = pixel + row, at_line = line + place / places, at_pixel = place % places;
        const int here = row * Columns + (turn ^ (row / rows_apart % pieces)) * piece;
        if (at_pixel < width && at_line < lines) {
            const int64 at = static_cast<int64>(at_line) * line_stride + static_cast<int64>(at_pixel) * pixel_stride + first;
            if (first + piece <= columns) {
                store<piece>(to, at, load<piece>(from, here));
            } else {
                for (int x = 0; first + x < columns; x++) {
                    to[at + x] = from[here + x];
                }
            }
        }
    }
}

/// A warpgroup stores its 64 rows of `Columns` neighbours from shared memory, where a row begins as far behind a boundary of 16 bytes as it does
/// in the tensor: pieces of 16 bytes move whole, and the elements before the first and behind the last one by one. `first` is the first row's
/// first element; `rows` and `columns` are those inside of the tensor.
template<int Columns, class To, class T>
__device__ __forceinline__ void store_rows(const To &to, int first, int stride, shared<T> from, int rows, int columns) {
    constexpr int piece = 16 / static_cast<int>(sizeof(T)), pieces = Columns / piece, pitch = Columns + piece, at_once = 32 / pieces;
    static_assert(at_once <= 16, "a lane for each piece");
    const int warp = thread_rank() % 128 / 32, lane = lane_id(), turn = lane % pieces;
    columns = columns < Columns ? columns : Columns;
#pragma unroll
    for (int i = 0; i < 16; i += at_once) {
        const int row = warp * 16 + i + lane / pieces;
        const int64 at = first + static_cast<int64>(row) * stride;
        const int shift = static_cast<int>(at % piece), begin = (piece - shift) % piece, here = row * pitch + shift;
        const int c = begin + turn * piece;
        if (row < rows && c + piece <= columns) {
            store<piece>(to, at + c, load<piece>(from, here + c));
        }
        const int before = begin < columns ? begin : columns, whole = (columns - before) / piece * piece;
#pragma unroll 1
        for (int end = turn; end < columns - whole && row < rows; end += pieces) {
            const int alone = end < before ? end : end + whole;
            to[at + alone] = from[here + alone];
        }
    }
}

}  // namespace tw
