// Which tensors a launch reads or writes in narrower accesses than a thread can make, and why: what `explain` shows.
#pragma once

#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

struct NarrowAccess {
    std::string tensor;  ///< "in0", "out1"
    bool writes = false;
    int bytes = 0;  ///< of the widest access to it
    std::string reason;
};

/// One for each tensor of at least a few thousand elements, and not far from the largest, that is moved by less than 16 bytes at a time.
std::vector<NarrowAccess> narrow_accesses(const tile::Program &program);

}  // namespace tilewright
