// A tensor that the copy unit fetches by tiles for a kernel that streams.
#pragma once

#include <Halide.h>
#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Two of its dimensions run along axes of the kernel, the others are constant in a block.
struct StreamedOperand {
    int input = -1;                     ///< of the kernel
    std::vector<Halide::Expr> indices;  ///< for each dimension
    int inner = -1;                     ///< dimension with unit stride
    int outer = -1;                     ///< the other that a tile runs along; -1 where all of its rows are one
};

/// The read as an operand whose dimensions run along the axes `inner` and `outer`, "" for none. Empty where the copy unit cannot fetch it:
/// strides and offsets that are no multiples of 16 bytes, more than 5 dimensions, indices that are no axes.
std::optional<StreamedOperand> streamed_operand(const Algorithm &algorithm, const Halide::Internal::Call *read, const std::string &inner,
                                                const std::string &outer);

/// Dimensions that the copy unit sees: the inner first, then the outer, then those that are constant in a block.
std::vector<int> copied_dimensions(const Algorithm &algorithm, const StreamedOperand &operand);

}  // namespace tilewright
