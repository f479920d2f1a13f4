#include "lowering/cuda/emulated_memory.h"

#include <algorithm>

#include "dsl/error.h"

namespace tilewright {

using tw::host::SharedAccess;

WarpClocks::WarpClocks(int warps) : clocks_(warps, std::vector<std::uint32_t>(warps, 0)) {
    for (int w = 0; w < warps; w++) {
        clocks_[w][w] = 1;
    }
}

void WarpClocks::synchronise(const std::vector<int> &warps) {
    std::vector<std::uint32_t> latest(clocks_.size(), 0);
    for (const int w : warps) {
        clocks_[w][w]++;
        std::transform(latest.begin(), latest.end(), clocks_[w].begin(), latest.begin(),
                       [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
    }
    for (const int w : warps) {
        clocks_[w] = latest;
    }
}

void WarpClocks::release(const void *object, int warp) {
    std::vector<std::uint32_t> &known = objects_[object];
    known.resize(clocks_.size(), 0);
    clocks_[warp][warp]++;
    for (std::size_t i = 0; i < known.size(); i++) {
        known[i] = std::max(known[i], clocks_[warp][i]);
    }
}

void WarpClocks::acquire(const void *object, int warp) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) {
        return;
    }
    for (std::size_t i = 0; i < found->second.size(); i++) {
        clocks_[warp][i] = std::max(clocks_[warp][i], found->second[i]);
    }
}

SharedMemory::SharedMemory(int dynamic_bytes) : bytes_(dynamic_bytes + static_capacity + 1024, 0xcd), dynamic_bytes_(dynamic_bytes) {
    shift_ = static_cast<int>((1024 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 1024) % 1024);
    next_static_ = shift_ + (dynamic_bytes + 127) / 128 * 128;
}

unsigned char *SharedMemory::static_part(const void *object, int bytes) {
    const auto [place, fresh] = statics_.emplace(object, next_static_);
    if (fresh) {
        next_static_ += (bytes + 127) / 128 * 128;
        internal_assert(next_static_ <= static_cast<int>(bytes_.size()), "static shared arrays of more than {} bytes", static_capacity);
    }
    return bytes_.data() + place->second;
}

bool SharedMemory::contains(const void *address) const {
    const auto *p = static_cast<const unsigned char *>(address);
    return p >= bytes_.data() && p < bytes_.data() + bytes_.size();
}

bool SharedMemory::conflicts(const Access &earlier, int thread, int warp, const WarpClocks &clocks) {
    return earlier.thread >= 0 && earlier.thread != thread && !clocks.ordered(earlier.warp, earlier.time, warp);
}

std::string SharedMemory::touch(const void *address, int bytes, SharedAccess access, int thread, int warp, const WarpClocks &clocks) {
    if (records_.empty()) {
        records_.resize(bytes_.size());
    }
    const std::size_t offset = offset_of(address);
    const Access now{thread, warp, clocks.now(warp)};
    for (std::size_t i = offset; i < offset + bytes; i++) {
        Record &record = records_[i];
        if (access != SharedAccess::write && record.write.thread < 0) {
            return "reads shared memory that nobody has written";
        }
        if (conflicts(record.write, thread, warp, clocks) && !(access == SharedAccess::atomic && record.atomic)) {
            return fmt::format("{} what thread {} wrote with no barrier between them",
                               access == SharedAccess::read ? "reads" : "overwrites", record.write.thread);
        }
        if (access == SharedAccess::read) {
            if (record.read.thread >= 0 && record.read.warp != warp) {
                record.other_read = record.read;
            }
            record.read = now;
            continue;
        }
        for (const Access &read : {record.read, record.other_read}) {
            if (conflicts(read, thread, warp, clocks)) {
                return fmt::format("overwrites what thread {} read with no barrier between them", read.thread);
            }
        }
        record.write = now;
        record.atomic = access == SharedAccess::atomic;
    }
    return {};
}

}  // namespace tilewright
