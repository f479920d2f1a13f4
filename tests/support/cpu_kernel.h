// Kernels written by hand for tests, and their run on the CPU target.
#pragma once

#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"

namespace tilewright::tests {

/// Collects the inputs, stages and outputs of a kernel.
class KernelBuilder {
public:
    explicit KernelBuilder(std::string name) { kernel_.name = std::move(name); }

    /// Contiguous unless strides are given.
    Halide::ImageParam input(const std::string &name, DType dtype, std::vector<Extent> sizes, std::vector<Extent> strides = {});
    void stage(const Halide::Func &func, std::vector<Extent> extents, std::vector<Extent> reduction_extents = {});
    /// A value of the stage, contiguous unless strides are given. Its name is the stage's with the tuple index.
    void output(const std::string &stage, int tuple_index = 0, std::vector<Extent> strides = {});
    void symbol(const std::string &name, std::int64_t min, std::int64_t max) { kernel_.algorithm.symbols[name] = {min, max}; }
    Kernel finish();

private:
    Kernel kernel_;
};

/// Compiles, loads and runs. Outputs have the kernel's strides and are filled with 0xff beforehand. Throws UserError with site, index and
/// size where an index is out of range.
std::vector<HostTensor> run_on_cpu(const Kernel &kernel, const Directives &directives, const std::vector<HostTensor> &inputs,
                                   const SymbolValues &symbols = {});

template<typename T> HostTensor tensor_of(DType dtype, std::vector<std::int64_t> sizes, const std::vector<T> &values) {
    HostTensor tensor = HostTensor::zeros(dtype, std::move(sizes));
    std::copy(values.begin(), values.end(), reinterpret_cast<T *>(tensor.mutable_data()));
    return tensor;
}

/// The elements of a contiguous tensor.
template<typename T> std::vector<T> values_of(const HostTensor &tensor) {
    const auto *data = reinterpret_cast<const T *>(tensor.data());
    return std::vector<T>(data, data + tensor.meta.elements().value());
}

/// Normally distributed, the same for a seed on every machine.
std::vector<float> random_floats(std::int64_t count, unsigned seed);

/// Largest |a - b| / (1 + |b|).
double largest_error(const std::vector<float> &actual, const std::vector<float> &expected);

}  // namespace tilewright::tests
