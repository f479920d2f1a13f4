#include "runtime/cuda/host_copy.h"

#include "runtime/cuda/memory.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"
#include "runtime/strided_copy.h"

namespace tilewright {

Tensor upload(const HostTensor &tensor, const std::vector<std::int64_t> &strides, CUstream stream) {
    Tensor result = to_tensor(tensor);
    const std::int64_t bytes = span_bytes(result.dtype, result.sizes, strides);
    Tensor staged = result;
    if (!same_layout(result.strides, strides, result.sizes)) {
        staged = allocate_tensor(result.dtype, result.sizes, strides);
        copy_strided(staged.data, strides, result.data, result.strides, result.sizes, size_in_bytes(result.dtype));
    }
    const auto memory = std::make_shared<DeviceMemory>(bytes);
    if (bytes > 0) {
        cuda_check(CudaDriver::get().copy_to_device(memory->address(), staged.data, static_cast<std::size_t>(bytes), stream),
                   "copying an input");
        cuda_check(CudaDriver::get().stream_synchronize(stream), "copying an input");
    }
    result.strides = strides;
    result.data = memory->data();
    result.storage = memory;
    return result;
}

HostTensor download(const Tensor &tensor, CUstream stream) {
    Tensor host = allocate_tensor(tensor.dtype, tensor.sizes, tensor.strides);
    const std::int64_t bytes = span_bytes(tensor.dtype, tensor.sizes, tensor.strides);
    if (bytes > 0) {
        cuda_check(
            CudaDriver::get().copy_to_host(host.data, reinterpret_cast<CUdeviceptr>(tensor.data), static_cast<std::size_t>(bytes), stream),
            "copying an output");
        cuda_check(CudaDriver::get().stream_synchronize(stream), "copying an output");
    }
    return to_host_tensor(host);
}

}  // namespace tilewright
