// Index maps between two shapes of one row-major order.
#pragma once

#include <Halide.h>
#include <vector>

#include "dsl/graph/extent.h"

namespace tilewright::translation {

/// Where element `indices` of a tensor of shape `to` stands in a tensor of shape `from`. Groups of dimensions that hold the same number
/// of elements are mapped apart, so that [B, S, H*D] -> [B, S, H, D] gives h*D + d and its inverse (x / D, x % D); dimensions of size 1
/// take part in nothing.
std::vector<Halide::Expr> reshape_map(const std::vector<Extent> &from, const std::vector<Extent> &to,
                                      const std::vector<Halide::Expr> &indices);

/// The indices of row-major element number `linear`.
std::vector<Halide::Expr> delinearise(const Halide::Expr &linear, const std::vector<Extent> &sizes);

}  // namespace tilewright::translation
