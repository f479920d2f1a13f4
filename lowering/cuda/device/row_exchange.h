// Rows of a product whose columns lie in several blocks of a cluster: what each block has reduced of a row is combined.
// Warps of one rank hold the same rows in all blocks, so each has a barrier at which only these meet.
#pragma once

#include "async_copy.h"
#include "warp.h"

namespace tw {

#if defined(__CUDACC__)

/// At the barrier of block `rank` of the cluster; what was written before is handed over.
__device__ __forceinline__ void barrier_arrive_at(shared<uint64> barriers, int i, int rank) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(
                     shared_address(barriers + i)), "r"(rank) : "memory");
}
/// Until the phase of this parity is over, to which threads of other blocks arrive.
__device__ __forceinline__ void barrier_wait_for_cluster(uint64 *barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(
                     shared_address(barrier)), "r"(parity) : "memory");
}

#else

inline void barrier_arrive_at(shared<uint64> barriers, int i, int rank) { barrier_arrive(barrier_at(peer(barriers, rank), i)); }
inline void barrier_wait_for_cluster(uint64 *barrier, int parity) { barrier_wait(barrier, parity); }

#endif

/// All threads of the block, which wait for those of the others: nobody arrives at a barrier that is not there.
template<int Blocks> __device__ __forceinline__ void row_barriers_begin(shared<uint64> barriers, int warps) {
    if (thread_rank() == 0) {
        for (int i = 0; i < warps; i++) {
            barrier_init(barrier_at(barriers, i), Blocks);
        }
        barrier_init_fence();
    }
    sync_cluster();
}

/// Values of the warp's rows, the same in the four lanes that hold one, are combined with those of the other blocks, in the blocks' order; each
/// gets the result. `exchange` has two places for each of the tile's `Rows`, used in turn: who writes one knows that the others have read it.
/// `phase` counts the calls.
template<int Blocks, int Rows, class Combine, int Chunks, class T, class Exchange>
__device__ __forceinline__ void combine_rows(T (&values)[Chunks][2], const Exchange &exchange, shared<uint64> barriers, int phase) {
    const int warp = thread_rank() / 32, lane = lane_id();
    const int first = phase % 2 * Rows + warp / 4 * (Chunks * 64) + warp % 4 * 16 + lane / 4;
    if (lane % 4 == 0) {
#pragma unroll
        for (int i = 0; i < Chunks * 2; i++) {
            exchange[first + i / 2 * 64 + i % 2 * 8] = values[i / 2][i % 2];
        }
    }
    sync_warp();
    if (lane < Blocks) {
        barrier_arrive_at(barriers, warp, lane);
    }
    barrier_wait_for_cluster(barrier_at(barriers, warp), phase % 2);
#pragma unroll
    for (int block = 0; block < Blocks; block++) {
        const auto part = peer(exchange, block);
#pragma unroll
        for (int i = 0; i < Chunks * 2; i++) {
            const T next = part[first + i / 2 * 64 + i % 2 * 8];
            values[i / 2][i % 2] = block == 0 ? next : Combine{}(values[i / 2][i % 2], next);
        }
    }
}

}  // namespace tw
