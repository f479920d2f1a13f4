// Index tensors that are formulas: computed places whose range is known before they are computed.
#pragma once

#include <Halide.h>
#include <optional>
#include <vector>

#include "dsl/graph/extent.h"

namespace tilewright::translation {

/// An integer formula over d0, d1, … as a 32-bit expression, and the values that it may take, both ends included.
struct RangedIndex {
    Halide::Expr index;
    Extent low, high;
};

/// Reads integer arithmetic of dsl/algorithm/math.h (sums, products and quotients by constants, absolute values, minima and maxima) whose
/// variables run over `extents`, and float formulas over these that are truncated to places. Empty where the expression reads a tensor or
/// is of another form.
std::optional<RangedIndex> ranged_index(const Halide::Expr &expression, const std::vector<Extent> &extents, const SymbolRanges &symbols);

/// Whether a <= b for all values of the symbols.
bool provably_at_most(const Extent &a, const Extent &b, const SymbolRanges &symbols);

}  // namespace tilewright::translation
