// The sort that compiled CPU kernels call (dsl/algorithm/sort.h has its calling convention).
#pragma once

#include <cstdint>

struct halide_buffer_t;

namespace tilewright {

/// Sorts each row of `input` along its last dimension, stably; NaN is greater than every number. 0, or 1 for a type it does not know.
int sort_rows(halide_buffer_t *input, std::int32_t extent, bool descending, halide_buffer_t *values, halide_buffer_t *indices);

}  // namespace tilewright
