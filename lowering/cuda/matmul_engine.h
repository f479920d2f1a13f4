// Kernels that are one matrix product with a small epilogue, as cuBLASLt computes them.
#pragma once

#include <optional>
#include <string>

#include "lowering/fusion/kernel.h"
#include "runtime/plan.h"

namespace tilewright {

/// The product, batched or not, that the whole kernel is: operands of one type, converted at most, each contiguous along one of its two
/// axes; then at most a constant factor, a bias along the columns, a ReLU and a conversion. Buffers count the kernel's inputs, then its
/// output. Else empty, with the reason in words.
std::optional<MatmulEngineStep> match_matmul(const Kernel &kernel, std::string *why_not = nullptr);

/// Whether the whole kernel is such a product of float32 or float64 values, with enough to multiply for a library's call.
bool is_large_float_product(const Kernel &kernel);

}  // namespace tilewright
