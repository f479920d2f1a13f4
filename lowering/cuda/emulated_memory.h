// Shared memory of emulated blocks: who touched which byte, and whether a barrier stands between conflicting accesses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lowering/cuda/device/host/runtime.h"

namespace tilewright {

/// Which accesses happen before which, by vector clocks over the warps that run together.
class WarpClocks {
public:
    explicit WarpClocks(int warps);
    std::uint32_t now(int warp) const { return clocks_[warp][warp]; }
    /// Whether what `earlier` did at `time` happens before what `warp` does now.
    bool ordered(int earlier, std::uint32_t time, int warp) const { return clocks_[warp][earlier] > time; }
    void synchronise(const std::vector<int> &warps);
    void release(const void *object, int warp);
    void acquire(const void *object, int warp);

private:
    std::vector<std::vector<std::uint32_t>> clocks_;  ///< [warp][what it knows of each warp]
    std::map<const void *, std::vector<std::uint32_t>> objects_;
};

/// One block's shared memory: its dynamic part, then its static arrays as they are first used.
class SharedMemory {
public:
    explicit SharedMemory(int dynamic_bytes);

    unsigned char *dynamic_part() { return bytes_.data() + shift_; }
    int dynamic_bytes() const { return dynamic_bytes_; }
    /// The array of a static object, the same for the same object.
    unsigned char *static_part(const void *object, int bytes);
    bool contains(const void *address) const;
    std::size_t offset_of(const void *address) const { return static_cast<const unsigned char *>(address) - bytes_.data(); }
    unsigned char *at(std::size_t offset) { return bytes_.data() + offset; }

    /// What is wrong with the access, or empty. `thread` and its `warp` are unique among those that run together.
    std::string touch(const void *address, int bytes, tw::host::SharedAccess access, int thread, int warp, const WarpClocks &clocks);

private:
    struct Access {
        int thread = -1;
        int warp = 0;
        std::uint32_t time = 0;
    };
    struct Record {
        Access write, read, other_read;
        bool atomic = false;
    };
    static bool conflicts(const Access &earlier, int thread, int warp, const WarpClocks &clocks);

    static constexpr int static_capacity = 256 * 1024;
    std::vector<unsigned char> bytes_;
    std::vector<Record> records_;
    int shift_ = 0;  ///< to the first address that is a multiple of 1024
    int dynamic_bytes_ = 0;
    int next_static_ = 0;
    std::map<const void *, int> statics_;
};

}  // namespace tilewright
