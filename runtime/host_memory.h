// Tensors in host memory of our own.
#pragma once

#include "runtime/executor.h"

namespace tilewright {

/// Uninitialised, aligned for vector accesses.
std::shared_ptr<std::byte> allocate_host(std::size_t bytes);
/// Uninitialised, with these strides.
Tensor allocate_tensor(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides);

/// Views of one another; storage is shared.
Tensor to_tensor(const HostTensor &tensor);
HostTensor to_host_tensor(const Tensor &tensor);
/// A copy with the same sizes and strides.
Tensor clone(const Tensor &tensor);

}  // namespace tilewright
