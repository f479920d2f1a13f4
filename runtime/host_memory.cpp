#include "runtime/host_memory.h"

#include <cstdlib>
#include <new>

#include "runtime/memory_plan.h"
#include "runtime/strided_copy.h"

namespace tilewright {

std::shared_ptr<std::byte> allocate_host(std::size_t bytes) {
    constexpr std::size_t alignment = 256;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    auto *memory = static_cast<std::byte *>(std::aligned_alloc(alignment, rounded));
    if (!memory) {
        throw std::bad_alloc();
    }
    return {memory, [](std::byte *p) { std::free(p); }};
}

Tensor allocate_tensor(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
    const std::shared_ptr<std::byte> storage = allocate_host(static_cast<std::size_t>(span_bytes(dtype, sizes, strides)));
    return {dtype, std::move(sizes), std::move(strides), storage.get(), storage};
}

Tensor to_tensor(const HostTensor &tensor) {
    Tensor result;
    result.dtype = tensor.meta.dtype;
    result.sizes = evaluate(tensor.meta.sizes, {});
    result.strides = evaluate(tensor.meta.strides, {});
    result.data = const_cast<std::byte *>(tensor.data());
    result.storage = std::const_pointer_cast<std::byte>(tensor.storage);
    return result;
}

HostTensor to_host_tensor(const Tensor &tensor) {
    HostTensor result;
    result.meta.dtype = tensor.dtype;
    result.meta.sizes.assign(tensor.sizes.begin(), tensor.sizes.end());
    result.meta.strides.assign(tensor.strides.begin(), tensor.strides.end());
    result.storage = std::shared_ptr<const std::byte>(tensor.storage, tensor.data);
    result.storage_bytes = static_cast<std::size_t>(span_bytes(tensor.dtype, tensor.sizes, tensor.strides));
    return result;
}

Tensor clone(const Tensor &tensor) {
    Tensor copy = allocate_tensor(tensor.dtype, tensor.sizes, tensor.strides);
    copy_strided(copy.data, copy.strides, tensor.data, tensor.strides, tensor.sizes, size_in_bytes(tensor.dtype));
    return copy;
}

}  // namespace tilewright
