// Sums of two 16-bit floats that are rounded to their own type.
#pragma once

#include <optional>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// a + b or a - b, each lane of two vectors of 16-bit floats in registers.
struct NarrowSum {
    Halide::Expr left, right;  ///< reads of the lane
    bool minus = false;
};

/// What `e` is, a 16-bit float or the float that has its value, where the loop over lanes adds whole vectors.
std::optional<NarrowSum> narrow_sum(const Halide::Expr &e, const tile::For &lanes, const tile::Launch &launch);

bool is_same(const NarrowSum &a, const NarrowSum &b);

/// Whether `indices` run through a whole vector of the registers along the loop.
bool is_whole_vector(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices, const tile::For &lanes);

}  // namespace tilewright
