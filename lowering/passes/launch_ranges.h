// What the variables of a launch may be, for proofs about the addresses of its accesses.
#pragma once

#include "lowering/passes/index_math.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

constexpr std::int64_t widest_access = 16;  ///< bytes, of one instruction

/// Ranges of the symbols, of the thread's rank, of each axis and of its leaves.
VariableRanges launch_ranges(const tile::Launch &launch, const SymbolRanges &symbols);
/// A number that divides the axis: of what its leaves step by. `left_out`: as if that leaf were 0.
std::int64_t multiple_of_axis(const tile::Axis &axis, const std::string &left_out = "");
/// Of all axes.
std::map<std::string, std::int64_t> launch_multiples(const tile::Launch &launch);
/// The axis whose vectors, or other smallest parts, the loop goes through.
const tile::Axis *axis_stepped_by(const tile::Launch &launch, const tile::For &loop);

}  // namespace tilewright
