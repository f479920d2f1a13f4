// Vectors that a thread fetches into shared memory long before it reads them (PTX ISA, "cp.async").
#pragma once

#include "async_copy.h"
#include "memory.h"

namespace tw {

#if defined(__CUDACC__)

/// `N` neighbours go past the registers; they are there when copies_wait() says so.
template<int N, class T> __device__ __forceinline__ void copy_ahead(T *to, const T *from) {
    constexpr int bytes = static_cast<int>(sizeof(T)) * N, piece = bytes < 16 ? bytes : 16;
    static_assert(piece == 4 || piece == 8 || bytes % 16 == 0, "what one instruction copies");
#pragma unroll
    for (int i = 0; i < bytes; i += piece) {
        const auto *source = reinterpret_cast<const unsigned char *>(from) + i;
        if constexpr (piece == 16) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to) + i), "l"(source) : "memory");
        } else {
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to) + i), "l"(source), "n"(piece) : "memory");
        }
    }
}
/// The place is aligned, and some of the elements lie in the tensor; the others may have any value.
template<int N, class T> __device__ __forceinline__ void copy_inside_ahead(T *to, const T *from) { copy_ahead<N>(to, from); }
/// Ends a group of the thread's copies.
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most `Pending` of the thread's groups are under way.
template<int Pending> __device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

#else

template<int N, class To, class From> void copy_ahead(const To &to, const From &from) {
    const auto vector = load<N>(from, 0);
    store<N>(to, 0, vector);
}
template<int N, class To, class From> void copy_inside_ahead(const To &to, const From &from) {
    vec<typename From::value_type, N> vector = {};
    for (int i = 0; i < N; i++) {
        if (from.base + i >= from.begin && from.base + i < from.end) {
            vector[i] = from[i];
        }
    }
    store<N>(to, 0, vector);
}
inline void copies_commit() {}
template<int Pending> void copies_wait() {}

#endif

}  // namespace tw
