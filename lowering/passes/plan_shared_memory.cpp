#include <algorithm>

#include "dsl/error.h"
#include "lowering/passes/passes.h"

namespace tilewright {
namespace {

constexpr std::int64_t largest_static = 48 << 10;  // bytes; more must be dynamic (CUDA C++ Programming Guide, "Shared Memory")

std::int64_t bytes_of(const tile::Buffer &buffer) {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < buffer.extents.size(); ++i) {
        if (buffer.extents[i].value() == 0) {
            return 0;
        }
        elements += (buffer.extents[i].value() - 1) * buffer.strides[i].value();
    }
    std::int64_t bytes = 0, alignment = 1;
    for (const Halide::Type &type : buffer.types) {  // as a C struct
        alignment = std::max<std::int64_t>(alignment, type.bytes());
        bytes = (bytes + type.bytes() - 1) / type.bytes() * type.bytes() + type.bytes();
    }
    return elements * ((bytes + alignment - 1) / alignment * alignment);
}

}  // namespace

void plan_shared_memory(tile::Launch &launch, const GpuFacts &facts) {
    std::int64_t total = 0;
    for (tile::Buffer &buffer : launch.buffers) {
        if (buffer.memory == tile::Memory::shared) {
            if (!buffer.overlays.empty()) {
                buffer.byte_offset = launch.find_buffer(buffer.overlays)->byte_offset;
                total = std::max(total, buffer.byte_offset + bytes_of(buffer));
                continue;
            }
            const std::int64_t alignment = std::max<std::int64_t>(buffer.alignment, 128);
            total = (total + alignment - 1) / alignment * alignment;
            buffer.byte_offset = static_cast<int>(total);
            total += bytes_of(buffer);
        }
    }
    if (total > facts.shared_per_block) {
        user_error("launch {}: its tiles need {} bytes of shared memory a block; {} has {}; make the tiles smaller", launch.name, total,
                   facts.name, facts.shared_per_block);
    }
    // What the copy unit and the matrix unit work on is passed around by address.
    const bool by_address = std::any_of(launch.buffers.begin(), launch.buffers.end(),
                                        [](const tile::Buffer &b) { return b.memory == tile::Memory::shared && b.ordered; });
    launch.shared_bytes = total > largest_static || by_address ? static_cast<int>(total) : 0;
}

}  // namespace tilewright
