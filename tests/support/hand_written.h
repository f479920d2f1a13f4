// Kernels of every form, written by hand, with their values computed plainly in float64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/cpu_kernel.h"

namespace tilewright::tests {

/// A kernel, inputs for it, and the float32 values of its first output.
struct HandWritten {
    std::string name;
    Kernel kernel;
    std::vector<HostTensor> inputs;
    std::vector<float> expected;
    double tolerance = 2e-5;  ///< of largest_error()
};

HandWritten pointwise_chain(std::int64_t rows, std::int64_t columns);
HandWritten softmax(std::int64_t rows, std::int64_t columns);
HandWritten layer_norm(std::int64_t rows, std::int64_t columns);
HandWritten column_sum(std::int64_t rows, std::int64_t columns);
/// relu(a @ b + bias), b as [K, N] or, transposed, as [N, K].
HandWritten linear_relu(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed);
/// a @ b alone.
HandWritten product(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed);
HandWritten softmax_of_product(std::int64_t m, std::int64_t n, std::int64_t k);
HandWritten convolution(std::int64_t channels, std::int64_t outputs, std::int64_t size, int stride, int padding);
HandWritten arg_maximum(std::int64_t rows, std::int64_t columns);
HandWritten cumulative_sum(std::int64_t rows, std::int64_t columns, int axis);
HandWritten gather_rows(std::int64_t rows, std::int64_t width, std::int64_t count);
HandWritten scatter_add(std::int64_t rows, std::int64_t width, std::int64_t count);

}  // namespace tilewright::tests
