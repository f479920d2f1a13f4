// Products of matrices as core contractions: what several families of rules share.
#pragma once

#include "lowering/decompose/builder.h"

namespace tilewright {

/// The type that a product of this type accumulates in and is given in before it is rounded: float32 for float16 and bfloat16,
/// int32 for int8, the type itself otherwise.
DType accumulator_type(DType type);

/// torch.matmul of tensors of one type, unrounded: in accumulator_type of theirs.
Node *matmul(Builder &b, Node *left, Node *right);

/// input @ weight^T + bias in the input's type, rounded once; input has any rank >= 1, bias may be nullptr.
Node *linear(Builder &b, Node *input, Node *weight, Node *bias);

}  // namespace tilewright
