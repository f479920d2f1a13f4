// Transposed convolutions as ordinary ones over the phases of their output.
#pragma once

#include <functional>

#include "lowering/decompose/builder.h"

namespace tilewright {

/// What becomes of a convolution before its phases interleave: `bias` has a value for each of its channels, or is nullptr.
using FinishConvolution = std::function<Node *(Node *value, Node *bias)>;

/// conv_transpose of input [N, C, spatial…] by weight [C, O/groups, spatial…] and bias [O] (or nullptr), accumulated in `accumulator`.
/// Outputs whose places have one remainder modulo the stride (a phase) see the same taps: each phase is a convolution of stride 1 with a
/// part of the kernel, and the phases interleave. Where all have equally many taps, one convolution computes them side by side as channels.
Node *transposed_convolution(Builder &b, Node *input, Node *weight, Node *bias, const Builder::Convolution &how,
                             const Extents &output_padding, DType accumulator, const FinishConvolution &finish);

}  // namespace tilewright
