// Kernels written as Halide Funcs through the public library: called, scheduled by hand, with symbolic sizes, from several threads.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "apps/api/tilewright.h"

using namespace tilewright;

namespace {

HostTensor floats(std::vector<std::int64_t> sizes, const std::vector<float> &values) {
    HostTensor tensor = HostTensor::zeros(DType::float32, std::move(sizes));
    std::copy(values.begin(), values.end(), reinterpret_cast<float *>(tensor.mutable_data()));
    return tensor;
}

std::vector<float> values_of(const HostTensor &tensor) {
    const auto *data = reinterpret_cast<const float *>(tensor.data());
    return {data, data + tensor.meta.elements().value()};
}

Options on_cpu() {
    Options options;
    options.target = "cpu";
    return options;
}

/// y[i, j] = 2 x[i, j] + b[j], and the rows' sums of it, for any number of rows.
KernelProgram scaled_rows() {
    const Extent n = Extent::symbol("n");
    KernelProgram program("scaled_rows");
    Halide::ImageParam x = program.input("x", DType::float32, {n, 3});
    Halide::ImageParam b = program.input("b", DType::float32, {3});
    Halide::Var i("i"), j("j");
    Halide::Func y("y"), total("total");
    y(i, j) = x(i, j) * 2.0F + b(j);
    program.stage(y, {n, 3});
    const Halide::RDom r(0, 3, "r");
    define_reduction(total, {i}, Combiner::sum, {y(i, r)}, r);
    program.stage(total, {n}, {3});
    program.output(y);
    program.output(total);
    return program;
}

}  // namespace

TEST_CASE("a kernel under its default schedule, at two sizes") {
    const CompiledFunction f = scaled_rows().compile(on_cpu());
    const HostTensor b = floats({3}, {1, 0, -1});
    const std::vector<HostTensor> small = f(std::vector{floats({1, 3}, {1, 2, 3}), b});
    CHECK(values_of(small[0]) == std::vector<float>{3, 4, 5});
    CHECK(values_of(small[1]) == std::vector<float>{12});
    const std::vector<HostTensor> large = f(std::vector{floats({2, 3}, {1, 2, 3, 0, 0, 10}), b});
    CHECK(values_of(large[0]) == std::vector<float>{3, 4, 5, 1, 0, 19});
    CHECK(values_of(large[1]) == std::vector<float>{12, 20});
}

TEST_CASE("a schedule by hand gives the same values") {
    ScheduleBuilder s;
    s["y"].parallel("i");
    s["total"].compute_root();
    const CompiledFunction f = scaled_rows().compile(s.directives, on_cpu());
    CHECK(values_of(f(std::vector{floats({1, 3}, {1, 2, 3}), floats({3}, {1, 0, -1})})[1]) == std::vector<float>{12});
}

TEST_CASE("one kernel called from four threads") {
    const CompiledFunction f = scaled_rows().compile(on_cpu());
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int rows = 1; rows < 60; ++rows) {
                const HostTensor x = floats({rows, 3}, std::vector<float>(static_cast<std::size_t>(rows) * 3, static_cast<float>(t)));
                const std::vector<HostTensor> outputs = f(std::vector{x, floats({3}, {1, 1, 1})});
                wrong[t] +=
                    values_of(outputs[1]) != std::vector<float>(static_cast<std::size_t>(rows), 6.0F * static_cast<float>(t) + 3) ? 1 : 0;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("mistakes are named") {
    KernelProgram program = scaled_rows();
    CHECK_THROWS_WITH_AS(program.input("x", DType::float32, {1}), "kernel scaled_rows: two inputs are called \"x\"", UserError);
    Halide::Func stranger("stranger");
    CHECK_THROWS_WITH_AS(program.output(stranger), "kernel scaled_rows: stranger is no stage of it; call stage() before output()",
                         UserError);
    ScheduleBuilder s;
    s["y"].vectorize("q");
    CHECK_THROWS_AS(program.compile(s.directives, on_cpu()), UserError);
    const CompiledFunction f = program.compile(on_cpu());
    CHECK_THROWS_WITH_AS(f(std::vector{floats({1, 4}, {1, 2, 3, 4}), floats({3}, {1, 0, -1})}),
                         "input 0 \"x\": size of dimension 1 is 4 where the model wants 3", UserError);
}
