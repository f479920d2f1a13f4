// Copies elements between two host layouts of one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright {

/// Strides count elements of `element_bytes`. The two must not overlap, unless they are the same place.
void copy_strided(std::byte *to, std::span<const std::int64_t> to_strides, const std::byte *from,
                  std::span<const std::int64_t> from_strides, std::span<const std::int64_t> sizes, int element_bytes);

/// Whether both strides put every element at the same place (strides of dimensions of size 1 do not matter).
bool same_layout(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::span<const std::int64_t> sizes);

}  // namespace tilewright
