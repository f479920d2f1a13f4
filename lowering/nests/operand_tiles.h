// Operands of a tile in registers that the block keeps in shared memory.
#pragma once

#include <optional>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// A tile of a tensor whose copy the schedule puts into shared memory: all threads fill it for each step along the terms, and each
/// loads its part of one term at a time. Empty where `value` is no such operand.
std::optional<Halide::Expr> staged_operand(NestWork &work, const Stage &stage, const std::set<std::string> &axes,
                                           const Halide::Expr &value);

}  // namespace tilewright
