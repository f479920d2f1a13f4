// PyTorch's type promotion of several operands: tensors with dimensions, tensors without, and Python numbers.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lowering/decompose/arguments.h"

namespace tilewright {

/// torch.result_type of the operands. A number counts less than a tensor without dimensions, and that less than one with dimensions.
DType result_type(const std::vector<Operand> &operands);
/// float32 for integers and booleans, the type itself otherwise.
DType to_floating(DType type);

enum class Promotion {
    common,    ///< operands and result have the common type
    floating,  ///< integers become float32
    boolean,   ///< operands have the common type, the result is boolean (comparisons)
};

/// An elementwise operator: promotes the operands (float16 and bfloat16 are computed in float32), broadcasts them, applies
/// `function`, and converts the result. Numbers stay numbers unless all operands are numbers.
using Elementwise = std::function<Node *(Builder &, const std::vector<Operand> &)>;
Node *elementwise(Builder &b, std::vector<Operand> operands, Promotion promotion, const Elementwise &function);

/// Tensor of `type`, from a tensor or a number (which gives a tensor without dimensions).
Node *as_tensor(Builder &b, const Operand &operand, DType type);

}  // namespace tilewright
