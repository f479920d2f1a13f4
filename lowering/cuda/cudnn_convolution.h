// Kernels that are one convolution with a small epilogue, as cuDNN computes them.
#pragma once

#include <optional>
#include <string>

#include "lowering/fusion/kernel.h"
#include "runtime/plan.h"

namespace tilewright {

/// The convolution over one to three dimensions, of half-precision operands and without groups, that the whole kernel is; then sums and
/// products with numbers and tensors that broadcast, ReLUs, and one conversion. Buffers count the kernel's inputs, then its output. Else
/// empty, with the reason in words.
std::optional<GraphEngineStep> match_cudnn_convolution(const Kernel &kernel, std::string *why_not = nullptr);

}  // namespace tilewright
