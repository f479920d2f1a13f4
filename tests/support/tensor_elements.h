// The elements of a tensor in memory of this process, as they lie there.
#pragma once

#include <cstddef>
#include <span>

#include "dsl/graph/tensor.h"

namespace tilewright::tests {

template<class T> std::span<T> elements(const HostTensor &tensor) {
    return {reinterpret_cast<T *>(tensor.mutable_data()), tensor.storage_bytes / sizeof(T)};
}

}  // namespace tilewright::tests
