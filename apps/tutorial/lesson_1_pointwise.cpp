// Lesson 1: a first pointwise kernel, y[i, j] = tanh(x[i, j] + bias[j]), for any number of rows.
//
//     lesson_1_pointwise [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// A kernel has an algorithm, which says what is computed, and a schedule, which says how. This lesson writes the algorithm alone and takes
// the schedule that Tilewright would choose by itself.
#include <cmath>
#include <cstdio>

#include "apps/api/tilewright.h"

using namespace tilewright;

namespace {

constexpr int columns = 48;

KernelProgram tanh_of_sum() {
    // Sizes are extents: numbers, or symbols whose value each call brings along. Nothing is compiled again for another number of rows.
    const Extent rows = Extent::symbol("rows");
    KernelProgram program("tanh_of_sum");
    Halide::ImageParam x = program.input("x", DType::float32, {rows, columns});
    Halide::ImageParam bias = program.input("bias", DType::float32, {columns});

    // A Func is a rule for each of its elements. The first argument is the outermost axis, as in PyTorch.
    Halide::Var i("i"), j("j");
    Halide::Func sum("sum"), y("y");
    sum(i, j) = x(i, j) + bias(j);
    y(i, j) = math::tanh(sum(i, j));  // functions of tilewright::math have PyTorch's values, on every target

    // Each Func is a stage of the kernel, with the extents of its arguments. An output leaves the kernel; the others are intermediate, and
    // `sum` will never be a tensor in memory: its expression stands where it is read.
    program.stage(sum, {rows, columns});
    program.stage(y, {rows, columns});
    program.output(y);
    return program;
}

/// A tensor whose element number k is value(k).
template<typename Value> HostTensor filled(std::vector<std::int64_t> sizes, Value value) {
    HostTensor tensor = HostTensor::zeros(DType::float32, std::move(sizes));
    auto *data = reinterpret_cast<float *>(tensor.mutable_data());
    for (std::int64_t k = 0; k < tensor.meta.elements().value(); ++k) {
        data[k] = value(k);
    }
    return tensor;
}

int wrong_elements(const CompiledFunction &f, int rows) {
    const HostTensor x = filled({rows, columns}, [](std::int64_t k) { return std::sin(0.1F * static_cast<float>(k)); });
    const HostTensor bias = filled({columns}, [](std::int64_t k) { return 0.01F * static_cast<float>(k); });
    const std::vector<HostTensor> outputs = f(std::vector{x, bias});  // one tensor for each output, in order

    const auto *xs = reinterpret_cast<const float *>(x.data()), *ys = reinterpret_cast<const float *>(outputs[0].data());
    int wrong = 0;
    for (int k = 0; k < rows * columns; ++k) {
        const float expected = std::tanh(xs[k] + 0.01F * static_cast<float>(k % columns));
        wrong += std::fabs(ys[k] - expected) <= 1e-6F ? 0 : 1;
    }
    std::printf("%d rows: y[0, 1] = %g, %d wrong elements\n", rows, ys[1], wrong);
    return wrong;
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const CompiledFunction f = tanh_of_sum().compile(options);
    return wrong_elements(f, 1) + wrong_elements(f, 100) == 0 ? 0 : 1;
} catch (const UserError &error) {  // what we did wrong, on one line: the place, the cause, a repair
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
