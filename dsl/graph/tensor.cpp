#include "dsl/graph/tensor.h"

#include <cstdlib>

#include "dsl/error.h"

namespace tilewright {

TensorMeta TensorMeta::contiguous(DType dtype, std::vector<Extent> sizes) {
    TensorMeta meta;
    meta.dtype = dtype;
    meta.strides = contiguous_strides(sizes);
    meta.sizes = std::move(sizes);
    return meta;
}

// A dimension of one element may have any stride, and a tensor without elements is contiguous whatever its strides say.
bool TensorMeta::is_contiguous() const {
    for (const Extent &size : sizes) {
        if (size == Extent(0)) {
            return true;
        }
    }
    Extent expected = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        if (sizes[i] == Extent(1)) {
            continue;
        }
        if (!(strides[i] == expected)) {
            return false;
        }
        expected = expected * sizes[i];
    }
    return true;
}

std::string TensorMeta::to_string() const {
    std::string text = std::string(name(dtype)) + tilewright::to_string(sizes);
    if (strides != contiguous_strides(sizes)) {
        text += " strides=" + tilewright::to_string(strides);
    }
    if (!(offset == Extent(0))) {
        text += " offset=" + offset.to_string();
    }
    return text;
}

const std::byte *HostTensor::data() const { return storage.get() + meta.offset.value() * size_in_bytes(meta.dtype); }

HostTensor HostTensor::zeros(DType dtype, std::vector<std::int64_t> sizes) {
    HostTensor tensor;
    tensor.meta = TensorMeta::contiguous(dtype, {sizes.begin(), sizes.end()});
    const std::int64_t bytes = (tensor.meta.elements() * Extent(size_in_bytes(dtype))).value();
    internal_assert(bytes >= 0, "a tensor of negative size {}", tensor.meta.to_string());
    // calloc leaves large tensors to the operating system, which gives zeroed pages as they are touched. Vector loads may pass the end.
    void *memory = std::calloc(static_cast<std::size_t>(bytes) + 64, 1);
    if (memory == nullptr) {
        user_error("no memory for {} ({} bytes); use smaller sizes", tensor.meta.to_string(), bytes);
    }
    tensor.storage = std::shared_ptr<const std::byte>(static_cast<std::byte *>(memory),
                                                      [](const std::byte *p) { std::free(const_cast<std::byte *>(p)); });
    tensor.storage_bytes = static_cast<std::size_t>(bytes);
    return tensor;
}

std::byte *HostTensor::mutable_data() const { return const_cast<std::byte *>(data()); }

}  // namespace tilewright
