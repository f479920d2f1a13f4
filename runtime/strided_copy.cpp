#include "runtime/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace tilewright {
namespace {

bool is_contiguous(std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes) {
    std::int64_t expected = 1;
    for (std::size_t d = sizes.size(); d-- > 0;) {
        if (sizes[d] != 1 && strides[d] != expected) {
            return false;
        }
        expected *= sizes[d];
    }
    return true;
}

}  // namespace

bool same_layout(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::span<const std::int64_t> sizes) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 0) {
            return true;
        }
    }
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] > 1 && a[d] != b[d]) {
            return false;
        }
    }
    return true;
}

void copy_strided(std::byte *to, std::span<const std::int64_t> to_strides, const std::byte *from,
                  std::span<const std::int64_t> from_strides, std::span<const std::int64_t> sizes, int element_bytes) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
        return;
    }
    if (is_contiguous(to_strides, sizes) && is_contiguous(from_strides, sizes)) {
        std::size_t bytes = static_cast<std::size_t>(element_bytes);
        for (std::int64_t size : sizes) {
            bytes *= static_cast<std::size_t>(size);
        }
        std::memmove(to, from, bytes);
        return;
    }
    if (sizes.empty()) {
        std::memmove(to, from, static_cast<std::size_t>(element_bytes));
        return;
    }
    for (std::int64_t i = 0; i < sizes[0]; ++i) {
        copy_strided(to + i * to_strides[0] * element_bytes, to_strides.subspan(1), from + i * from_strides[0] * element_bytes,
                     from_strides.subspan(1), sizes.subspan(1), element_bytes);
    }
}

}  // namespace tilewright
