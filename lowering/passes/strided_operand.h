// An operand of a product that is a plain strided read of one tensor: what the bulk copy unit can fetch.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lowering/passes/nest.h"

namespace tilewright {

struct StridedOperand {
    tile::Buffer buffer;
    Halide::Type type;                       ///< of the elements as stored
    std::map<std::string, Extent> strides;   ///< elements, for each axis that the address varies with
    Extent offset = 0;                       ///< elements, where every axis is 0

    Extent stride(const std::string &axis) const;
};

/// `factor` is an expression over the nest's axes and the launch's buffers; conversions that lose nothing may stand around the read.
/// Empty where the factor computes, gathers, pads, or reads at places that are no sum of strides times axes.
std::optional<StridedOperand> match_strided_operand(const Halide::Expr &factor, const Nest &nest, const tile::Launch &launch);

}  // namespace tilewright
