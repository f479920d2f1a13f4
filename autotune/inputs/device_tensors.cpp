#include "autotune/inputs/device_tensors.h"

#include <algorithm>

#include "autotune/inputs/draw_inputs.h"
#include "dsl/error.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"

namespace tilewright {

void DeviceTensors::upload(const HostTensor &values) {
    add(to_tensor(values));
    if (const std::int64_t bytes = memory_.back().bytes(); bytes > 0) {
        cuda_check(CudaDriver::get().copy_to_device(memory_.back().address(), values.data(), static_cast<std::size_t>(bytes), stream_),
                   "copying an input");
        cuda_check(CudaDriver::get().stream_synchronize(stream_), "copying an input");
    }
}

void DeviceTensors::draw(const TensorMeta &meta, std::int64_t bound, std::uint64_t seed) {
    add({meta.dtype, evaluate(meta.sizes, {}), evaluate(meta.strides, {}), nullptr, nullptr});
    const std::int64_t bytes = memory_.back().bytes();
    if (bytes == 0) {
        return;
    }
    const DrawnPattern pattern = draw_pattern(meta.dtype, bytes / size_in_bytes(meta.dtype), bound, seed);
    const CUdeviceptr start = memory_.back().address();
    cuda_check(CudaDriver::get().copy_to_device(start, pattern.bytes.data(), pattern.bytes.size(), stream_), "copying an input");
    // Copied once and doubled in place.
    for (auto filled = static_cast<std::int64_t>(pattern.bytes.size()); filled < bytes; filled *= 2) {
        const std::int64_t more = std::min(filled, bytes - filled);
        cuda_check(
            CudaDriver::get().copy_on_device(start + static_cast<CUdeviceptr>(filled), start, static_cast<std::size_t>(more), stream_),
            "repeating drawn values");
    }
    cuda_check(CudaDriver::get().stream_synchronize(stream_), "drawing an input");
}

void DeviceTensors::clear(const OutputPlace &place) {
    add({place.dtype, place.sizes, place.strides, nullptr, nullptr});
    if (const std::int64_t bytes = memory_.back().bytes(); bytes > 0) {
        cuda_check(CudaDriver::get().memset8(memory_.back().address(), 0xff, static_cast<std::size_t>(bytes), stream_),
                   "clearing an output");
    }
}

void DeviceTensors::add(Tensor tensor) {
    memory_.emplace_back(span_bytes(tensor.dtype, tensor.sizes, tensor.strides));
    tensor.data = memory_.back().data();
    tensors_.push_back(std::move(tensor));
}

}  // namespace tilewright
