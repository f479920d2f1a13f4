// Code that runs seldom, as at the end of an axis, is not written out step by step: it would push what runs often out of the instruction
// cache.
#pragma once

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// The unrolled or vector loop becomes a loop of the program, but where its steps are short or choose registers.
void roll_up(const tile::Launch &launch, tile::For &loop);

}  // namespace tilewright
