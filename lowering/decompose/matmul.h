// Products of matrices as core contractions: what several families of rules share.
#pragma once

#include "lowering/decompose/builder.h"
#include "lowering/decompose/rules.h"

namespace tilewright {

/// The type that a product of this type accumulates in and is given in before it is rounded: float32 for float16 and bfloat16,
/// int32 for int8, the type itself otherwise.
DType accumulator_type(DType type);

/// torch.matmul of tensors of one type, unrounded: in accumulator_type of theirs.
Node *matmul(Builder &b, Node *left, Node *right);

/// input @ weight^T + bias in the input's type, rounded once; input has any rank >= 1, bias may be nullptr.
Node *linear(Builder &b, Node *input, Node *weight, Node *bias);

/// Whether a batch of matrices is a permutation that leaves the batch in front.
bool is_transposed(const Node *matrices);

void add_grouped_product_rules(RuleTable &table);

/// The product of two batches [n, 1, k] and [n, k, m], or [n, k, m] and [n, m, 1], where the matrices are chosen from a table that is no
/// larger than the batch, and which is then read once; nullptr where it is no such product.
Node *chosen_product(Builder &b, Node *left, Node *right);

}  // namespace tilewright
