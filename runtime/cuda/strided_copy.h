// Copies a tensor between two layouts on the GPU: for write-backs, whose target's strides may be any.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/driver.h"

namespace tilewright {

/// Strides count elements of `element_bytes`. One plain copy where both layouts are the same and dense.
void enqueue_strided_copy(CUdeviceptr to, const std::vector<std::int64_t> &to_strides, CUdeviceptr from,
                          const std::vector<std::int64_t> &from_strides, const std::vector<std::int64_t> &sizes, int element_bytes,
                          CUstream stream);

/// The driver compiles the kernel when first used, which a capture does not allow: called before one starts.
void prepare_strided_copy();

}  // namespace tilewright
