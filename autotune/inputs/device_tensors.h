// Inputs and outputs of what is timed on a GPU.
#pragma once

#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/cuda/memory.h"
#include "runtime/executor.h"
#include "runtime/outputs.h"

namespace tilewright {

/// Tensors in device memory of their own.
class DeviceTensors {
public:
    explicit DeviceTensors(CUstream stream) : stream_(stream) {}

    void upload(const HostTensor &values);
    /// A drawn pattern (draw_inputs.h), over and over; sizes are constants.
    void draw(const TensorMeta &meta, std::int64_t bound, std::uint64_t seed);
    /// Filled with NaN (all bits set), so that what is not written is seen.
    void clear(const OutputPlace &place);
    const std::vector<Tensor> &tensors() const { return tensors_; }

private:
    void add(Tensor tensor);
    CUstream stream_;
    std::vector<DeviceMemory> memory_;
    std::vector<Tensor> tensors_;
};

}  // namespace tilewright
