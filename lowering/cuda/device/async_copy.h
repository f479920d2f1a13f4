// Pipelines of tiles in shared memory: mbarriers and the bulk tensor copy unit of Hopper (PTX ISA, "mbarrier", "cp.async.bulk.tensor").
// A pipeline of Stages slots has 2 * Stages barriers: slot s is full at barriers[s] and empty at barriers[Stages + s]. Iteration i uses
// slot i % Stages, for the (i / Stages)-th time.
#pragma once

#include "types.h"

namespace tw {

#if defined(__CUDACC__)

__device__ __forceinline__ uint32 shared_address(const void *pointer) { return static_cast<uint32>(__cvta_generic_to_shared(pointer)); }

__device__ __forceinline__ void barrier_init(uint64 *barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ __forceinline__ void barrier_arrive(uint64 *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives, and lets the phase wait for `bytes` more from the copy unit.
__device__ __forceinline__ void barrier_expect(uint64 *barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
/// Until the phase of this parity is over.
__device__ __forceinline__ void barrier_wait(uint64 *barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(
                     shared_address(barrier)), "r"(parity) : "memory");
}
__device__ __forceinline__ void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

template<int Rank> struct bulk_copy;
template<> struct bulk_copy<2> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int x, int y, int, int, int) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y) : "memory");
    }
};
template<> struct bulk_copy<3> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int x, int y, int z, int, int) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z) : "memory");
    }
};
template<> struct bulk_copy<4> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int x, int y, int z, int v, int) {
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(v) : "memory");
    }
};
template<> struct bulk_copy<5> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int x, int y, int z, int v, int w) {
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(v), "r"(w) : "memory");
    }
};

template<int Rank> struct bulk_store_of;
template<> struct bulk_store_of<2> {
    static __device__ __forceinline__ void store(const void *from, const tensor_map &map, int x, int y, int, int, int) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(shared_address(from)),
                     "r"(x), "r"(y) : "memory");
    }
};
template<> struct bulk_store_of<3> {
    static __device__ __forceinline__ void store(const void *from, const tensor_map &map, int x, int y, int z, int, int) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(shared_address(from)),
                     "r"(x), "r"(y), "r"(z) : "memory");
    }
};
template<> struct bulk_store_of<4> {
    static __device__ __forceinline__ void store(const void *from, const tensor_map &map, int x, int y, int z, int v, int) {
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map), "r"(shared_address(from)),
                     "r"(x), "r"(y), "r"(z), "r"(v) : "memory");
    }
};
template<> struct bulk_store_of<5> {
    static __device__ __forceinline__ void store(const void *from, const tensor_map &map, int x, int y, int z, int v, int w) {
        asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map), "r"(shared_address(from)),
                     "r"(x), "r"(y), "r"(z), "r"(v), "r"(w) : "memory");
    }
};
/// What was written to shared memory is seen by the copy unit.
__device__ __forceinline__ void fence_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until at most `Pending` of this thread's groups of stores have still to be read from shared memory.
template<int Pending> __device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory"); }
/// A tensor's descriptor is fetched before the first copy wants it.
__device__ __forceinline__ void prefetch_map(const tensor_map &map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

/// The warpgroup's share of the register file from here on. The warpgroups of a block together may not ask for more than its launch was given.
template<int Registers> __device__ __forceinline__ void registers_increase() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers)); }
template<int Registers> __device__ __forceinline__ void registers_decrease() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers)); }

#else

/// An mbarrier as the host keeps it: parity of the running phase, arrivals of a phase, arrivals and bytes that are missing.
struct host_barrier {
    static constexpr int parity_shift = 63, arrivals_shift = 48, missing_shift = 32;
    static void set(uint64 *barrier, uint64 parity, uint64 arrivals, uint64 missing, int bytes) {
        *barrier = parity << parity_shift | arrivals << arrivals_shift | missing << missing_shift | static_cast<uint32>(bytes);
    }
    static void change(uint64 *barrier, int arrived, int bytes) {
        const uint64 parity = *barrier >> parity_shift, arrivals = *barrier >> arrivals_shift & 0x7fff;
        const uint64 missing = (*barrier >> missing_shift & 0xffff) - static_cast<uint64>(arrived);
        const int pending = static_cast<int>(static_cast<uint32>(*barrier)) + bytes;
        if (missing == 0 && pending == 0) {
            set(barrier, parity ^ 1, arrivals, arrivals, 0);
        } else {
            set(barrier, parity, arrivals, missing, pending);
        }
    }
};
inline void barrier_init(uint64 *barrier, int arrivals) { host_barrier::set(barrier, 0, static_cast<uint64>(arrivals), static_cast<uint64>(arrivals), 0); }
inline void barrier_arrive(uint64 *barrier) {
    host::runtime->release(barrier);
    host_barrier::change(barrier, 1, 0);
}
inline void barrier_expect(uint64 *barrier, int bytes) {
    host::runtime->release(barrier);
    host_barrier::change(barrier, 1, bytes);
}
inline void barrier_wait(uint64 *barrier, int parity) {
    while (static_cast<int>(*barrier >> host_barrier::parity_shift) == parity) {
        host::runtime->yield();
    }
    host::runtime->acquire(barrier);
}
inline void barrier_init_fence() {}

/// Calls visit(place in shared memory, place in global memory or null outside of the tensor) for each element of the box at the coordinates.
template<class Visit> void visit_box(unsigned char *shared, const tensor_map &map, const long long (&start)[5], Visit visit) {
    long long elements = 1;
    for (int d = 0; d < map.rank; ++d) {
        elements *= map.box[d];
    }
    const int row = map.swizzle_bytes;
    for (long long i = 0; i < elements; ++i) {
        long long rest = i, offset = 0;
        bool inside = true;
        for (int d = 0; d < map.rank; ++d) {
            const long long at = start[d] + rest % map.box[d];
            rest /= map.box[d];
            inside = inside && at >= 0 && at < map.sizes[d];
            offset += at * (d == 0 ? map.element_bytes : map.byte_strides[d]);
        }
        long long place = i * map.element_bytes;
        if (row > 0) {
            place ^= place >> 7 << 4 & (row - 16);
        }
        if (inside && (map.base + offset < map.begin || map.base + offset + map.element_bytes > map.end)) {
            host::runtime->fail("bulk copy outside of its buffer in global memory", offset, map.end - map.begin);
        }
        visit(shared + place, inside ? map.base + offset : nullptr);
    }
}
/// An element as the copy unit leaves it in shared memory.
inline void copy_in(unsigned char *shared, const unsigned char *global, const tensor_map &map) {
    std::memcpy(shared, global, map.element_bytes);
    uint32 bits = 0;
    if (map.rounds_to_tf32 && (std::memcpy(&bits, global, 4), (bits & 0x7f800000U) != 0x7f800000U)) {
        bits = (bits + 0xfffU + (bits >> 13 & 1U)) & ~0x1fffU;
        std::memcpy(shared, &bits, 4);
    }
}
/// What lies outside of the tensor is zero.
template<int Rank> struct bulk_copy {
    static void load(unsigned char *to, const tensor_map &map, uint64 *barrier, int x, int y, int z, int v, int w) {
        int bytes = 0;
        visit_box(to, map, {x, y, z, v, w}, [&](unsigned char *shared, const unsigned char *global) {
            host::runtime->touch_shared(shared, map.element_bytes, host::SharedAccess::write);
            global ? copy_in(shared, global, map) : static_cast<void>(std::memset(shared, 0, map.element_bytes));
            bytes += map.element_bytes;
        });
        host::runtime->release(barrier);
        host_barrier::change(barrier, 0, -bytes);
    }
};
/// What lies outside of the tensor is left out.
template<int Rank> struct bulk_store_of {
    static void store(unsigned char *from, const tensor_map &map, int x, int y, int z, int v, int w) {
        visit_box(from, map, {x, y, z, v, w}, [&](unsigned char *shared, unsigned char *global) {
            if (global) {
                host::runtime->touch_shared(shared, map.element_bytes, host::SharedAccess::read);
                std::memcpy(global, shared, map.element_bytes);
            }
        });
    }
};
inline void fence_bulk() {}
inline void bulk_commit() {}
template<int Pending> void bulk_wait_read() {}
inline void prefetch_map(const tensor_map &) {}
template<int Registers> void registers_increase() {}
template<int Registers> void registers_decrease() {}

#endif

#if defined(__CUDACC__)
__device__ __forceinline__ uint64 *barrier_at(shared<uint64> barriers, int i) { return barriers + i; }
template<class T> __device__ __forceinline__ const unsigned char *bytes_of(shared<T> tile) { return reinterpret_cast<const unsigned char *>(tile); }
#else
inline uint64 *barrier_at(shared<uint64> barriers, int i) { return barriers.check(i, 1); }
template<class T> unsigned char *bytes_of(shared<T> tile) { return reinterpret_cast<unsigned char *>(tile.check(0, 1)); }
#endif

/// One thread of the block, before anything else.
template<class... Maps> __device__ __forceinline__ void prefetch_maps(const Maps &...maps) {
    if (thread_rank() == 0) {
        (prefetch_map(maps), ...);
    }
}
/// All threads of the block. `consumers` arrive when they have done with a slot.
template<int Stages> __device__ __forceinline__ void pipeline_begin(shared<uint64> barriers, int consumers) {
    if (thread_rank() == 0) {
        for (int i = 0; i < Stages; i++) {
            barrier_init(barrier_at(barriers, i), 1);
            barrier_init(barrier_at(barriers, Stages + i), consumers);
        }
        barrier_init_fence();
    }
    sync_block();
}
/// The producer: waits until the iteration's slot is empty and announces how many bytes will fill it.
template<int Stages> __device__ __forceinline__ void pipeline_acquire(shared<uint64> barriers, int iteration, int bytes) {
    const int slot = iteration % Stages;
    barrier_wait(barrier_at(barriers, Stages + slot), iteration / Stages % 2 ^ 1);
    barrier_expect(barrier_at(barriers, slot), bytes);
}
/// The producer: a box of the tensor goes to `to`, part of the iteration's slot.
template<int Stages, int Rank, class T>
__device__ __forceinline__ void bulk_load(shared<T> to, const tensor_map &map, shared<uint64> barriers, int iteration, int x, int y, int z = 0,
                                          int v = 0, int w = 0) {
    bulk_copy<Rank>::load(bytes_of(to), map, barrier_at(barriers, iteration % Stages), x, y, z, v, w);
}
/// A consumer: until the iteration's slot is full.
template<int Stages> __device__ __forceinline__ void pipeline_wait(shared<uint64> barriers, int iteration) {
    barrier_wait(barrier_at(barriers, iteration % Stages), iteration / Stages % 2);
}
/// One thread of each consumer: the iteration's slot may be filled again.
template<int Stages> __device__ __forceinline__ void pipeline_release(shared<uint64> barriers, int iteration) {
    barrier_arrive(barrier_at(barriers, Stages + iteration % Stages));
}

/// The warpgroup that the thread belongs to, alone.
__device__ __forceinline__ void sync_warpgroup() { sync_named(1 + thread_rank() / 128, 128); }
/// A warpgroup turns to the next of its Slots tiles in shared memory: the copy unit has read what was there. No slots: threads read the tile.
template<int Slots> __device__ __forceinline__ void stage_begin() {
    if constexpr (Slots > 0) {
        if (thread_rank() % 128 == 0) {
            bulk_wait_read<Slots - 1>();
        }
    }
    sync_warpgroup();
}
/// The tile is written.
__device__ __forceinline__ void stage_ready() {
    fence_bulk();
    sync_warpgroup();
}
/// One thread of the warpgroup: the tile goes to a box of the tensor.
template<int Rank, class T> __device__ __forceinline__ void bulk_store(shared<T> from, const tensor_map &map, int x, int y, int z = 0, int v = 0, int w = 0) {
    if (thread_rank() % 128 == 0) {
        bulk_store_of<Rank>::store(bytes_of(from), map, x, y, z, v, w);
    }
}
/// Ends a group of stores.
__device__ __forceinline__ void stage_commit() {
    if (thread_rank() % 128 == 0) {
        bulk_commit();
    }
}
/// Before the block ends, and with it its shared memory: the copy unit has read all of it.
__device__ __forceinline__ void stage_end() {
    if (thread_rank() % 128 == 0) {
        bulk_wait_read<0>();
    }
}

}  // namespace tw
