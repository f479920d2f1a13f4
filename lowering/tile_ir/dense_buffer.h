// Buffers of a launch's own: registers and shared memory without gaps.
#pragma once

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright::tile {

/// Its last dimension is the fastest.
inline Buffer dense_buffer(std::string name, std::vector<Halide::Type> types, Memory memory, std::vector<Extent> extents) {
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.types = std::move(types);
    buffer.memory = memory;
    buffer.strides = contiguous_strides(extents);
    buffer.extents = std::move(extents);
    return buffer;
}

}  // namespace tilewright::tile
