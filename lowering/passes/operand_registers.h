// Operands of a tile in registers: each is loaded or computed once, not once an element of the tile.
#pragma once

#include "lowering/passes/nest_work.h"

namespace tilewright {

/// Parts of the terms that vary along fewer register dimensions than the whole are loaded or computed once, into registers of their own.
/// Whether nothing else of the terms is read from memory.
bool keep_operands(NestWork &work, const Stage &stage, const std::set<std::string> &all, std::vector<Halide::Expr> &terms);

}  // namespace tilewright
