// Compares tensors where they lie, in device memory: what compare() does on the host, as fast as they can be read.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/executor.h"

namespace tilewright {

class DeviceCompare {
public:
    /// What differs first in the order of memory, "element 7: expected 2.5, got 2.25"; nothing where the tensors agree. They have one type,
    /// sizes and strides; places between their elements must agree too. Waits for `stream`.
    std::optional<std::string> mismatch(const Tensor &expected, const Tensor &actual, CUstream stream);

private:
    const CudaModule &module_of(DType type);
    std::map<DType, CudaModule> modules_;
};

}  // namespace tilewright
