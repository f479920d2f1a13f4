// Tensors between host and device memory; each call returns when the copy is complete.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/executor.h"

namespace tilewright {

/// A copy in device memory of its own, with `strides` (elements).
Tensor upload(const HostTensor &tensor, const std::vector<std::int64_t> &strides, CUstream stream);
/// A copy in host memory with the tensor's own strides.
HostTensor download(const Tensor &tensor, CUstream stream);

}  // namespace tilewright
