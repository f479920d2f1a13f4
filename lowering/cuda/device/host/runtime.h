// What kernels compiled for the host and the emulator that runs them know of each other.
#pragma once

namespace tw::host {

/// One argument of a launch. A buffer is a place between `begin` and `end`; a scalar is a number; anything else is passed by its address.
struct Argument {
    void *address = nullptr;
    void *begin = nullptr;
    void *end = nullptr;
    long long scalar = 0;
};

/// Where in the kernel's source something was done.
struct Place {
    const char *file;
    int line;
};

enum class SharedAccess { read, write, atomic };

/// Called by kernels; each call may switch to another thread of the block, or end the launch with a fault.
struct Runtime {
    void (*sync_block)(Place place);
    void (*sync_named)(int barrier, int threads, Place place);
    void (*sync_warp)(Place place);
    /// Deposits a word, waits for the warp and gives the word of lane `source` (in the warp).
    unsigned (*exchange)(unsigned word, int source, Place place);
    unsigned (*ballot)(bool predicate, Place place);
    [[noreturn]] void (*fail)(const char *what, long long index, long long size);
    /// Shared memory: the start of a static array that is named by its object, and of the dynamic part.
    unsigned char *(*static_shared)(const void *object, int bytes);
    unsigned char *(*dynamic_shared)(int *bytes);
    void (*touch_shared)(const void *address, int bytes, SharedAccess access);
    /// For waiting in a loop until another thread has done something.
    void (*yield)();
    /// Blocks of one cluster: this block's rank, the same place of another block's shared memory, a barrier for all.
    int (*cluster_rank)();
    unsigned char *(*peer_shared)(const void *address, int rank);
    void (*sync_cluster)(Place place);
    /// What a thread did before release(object) happens before what follows another's acquire(object).
    void (*release)(const void *object);
    void (*acquire)(const void *object);
};

/// The bulk tensor copy unit's descriptor. Innermost dimension first.
struct TensorMap {
    unsigned char *base = nullptr, *begin = nullptr, *end = nullptr;
    int element_bytes = 1, rank = 1, swizzle_bytes = 0;
    bool rounds_to_tf32 = false;
    long long sizes[5] = {};
    long long byte_strides[5] = {};  ///< of each dimension; [0] is the element
    unsigned box[5] = {};
    /// Of pixels where `space` > 0: first and last place along each dimension of space, and the distance between neighbours.
    int space = 0;
    long long first[3] = {}, last[3] = {}, steps[3] = {};
};

struct Dimensions {
    unsigned x = 1, y = 1, z = 1;
};
/// What a compiled kernel file offers to the emulator.
struct Exports {
    const Runtime **runtime;
    Dimensions *thread, *block, *block_dimensions, *grid_dimensions;
};

}  // namespace tw::host
