// What is known of a tensor before it exists, and a tensor in host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/dtype.h"
#include "dsl/graph/extent.h"

namespace tilewright {

/// Element type, sizes, and how elements lie in their storage. Strides and offset count elements.
struct TensorMeta {
    DType dtype = DType::float32;
    std::vector<Extent> sizes;
    std::vector<Extent> strides;
    Extent offset = 0;

    static TensorMeta contiguous(DType dtype, std::vector<Extent> sizes);
    int rank() const { return static_cast<int>(sizes.size()); }
    Extent elements() const { return product(sizes); }
    bool is_contiguous() const;
    std::string to_string() const;  ///< "float32[2, s0, 4]", with strides where they are not contiguous
    friend bool operator==(const TensorMeta &, const TensorMeta &) = default;
};

/// A tensor in host memory. Its sizes are constants. Copies share the storage, which may be a mapped file.
struct HostTensor {
    TensorMeta meta;
    std::shared_ptr<const std::byte> storage;  ///< start of the storage; element 0 is at offset * size_in_bytes
    std::size_t storage_bytes = 0;

    const std::byte *data() const;  ///< of the element at index 0 in every dimension
    static HostTensor zeros(DType dtype, std::vector<std::int64_t> sizes);
    std::byte *mutable_data() const;  ///< only for storage that this process allocated
};

}  // namespace tilewright
