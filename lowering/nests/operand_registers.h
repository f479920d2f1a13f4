// Operands of a tile in registers: each is loaded or computed once, not once an element of the tile.
#pragma once

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Parts of the member's terms that vary along fewer register dimensions than the whole, or that come by vectors along the terms, are
/// loaded or computed once, into registers of their own. Whether nothing else of the terms is read from memory.
bool keep_operands(NestWork &work, const Member &member, std::vector<Halide::Expr> &terms);

}  // namespace tilewright
