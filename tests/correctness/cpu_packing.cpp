// Tensors that are packed whole before a kernel runs, and the schedules that weights get.
#include <doctest/doctest.h>

#include "dsl/algorithm/algorithm.h"
#include "lowering/cpu/compile.h"
#include "lowering/cpu_schedules/default_schedule.h"
#include "tests/support/hand_written.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

bool has_directive(const Directives &directives, const std::string &stage, const std::string &name) {
    return std::any_of(directives.begin(), directives.end(), [&](const Directive &d) { return d.stage == stage && d.name == name; });
}

/// Input 1 is a weight.
void check_packed(const HandWritten &h, const std::string &reader) {
    FixedInputs fixed(h.kernel.algorithm.inputs.size(), false);
    fixed[1] = true;
    const Directives directives = default_cpu_schedule(h.kernel, fixed);
    const std::string copy = h.kernel.algorithm.inputs[1].name() + ".in(" + reader + ")";
    CAPTURE(h.name);
    CHECK(has_directive(directives, copy, "compute_root"));
    const std::vector<HostTensor> outputs = run_on_cpu(h.kernel, directives, h.inputs);
    CHECK(largest_error(values_of<float>(outputs[0]), h.expected) <= h.tolerance);
}

}  // namespace

TEST_CASE("weights of products are packed in panels, with a last one that is not full") {
    for (auto [m, n, k] : {std::array{7, 37, 5}, {1, 200, 33}, {64, 100, 48}, {130, 17, 33}}) {
        for (const bool transposed : {false, true}) {
            const HandWritten h = product(m, n, k, transposed);
            check_packed(h, h.kernel.algorithm.stages.back().name());
        }
    }
}

TEST_CASE("windows run along the channels of packed weights") {
    for (const HandWritten &h : {convolution(3, 16, 13, 1, 1), convolution(2, 40, 9, 2, 0), convolution(5, 16, 7, 2, 2)}) {
        check_packed(h, h.kernel.algorithm.stages.front().name());
    }
}

TEST_CASE("packing is a step of its own that reads the tensor alone") {
    const HandWritten h = product(8, 40, 16, true);
    FixedInputs fixed{false, true};
    const CompiledKernel compiled = compile_cpu(h.kernel, default_cpu_schedule(h.kernel, fixed));
    REQUIRE(compiled.steps.size() == 2);
    REQUIRE(compiled.intermediates.size() == 1);
    CHECK(compiled.intermediates[0].sizes == std::vector<Extent>{1, 16, 48});
    const auto &packing = std::get<CpuStep>(compiled.steps[0].action);
    CHECK(std::get<BufferArgument>(packing.arguments.front()).buffer == 1);
    CHECK(std::get<BufferArgument>(packing.arguments.back()).written);
    CHECK(packing.arguments.size() == 2);
}

TEST_CASE("tensors read across their rows pass through tiles") {
    for (auto [rows, columns] : {std::pair(16, 16), {40, 33}, {100, 64}, {17, 300}}) {
        KernelBuilder b("transpose");
        const Halide::ImageParam x = b.input("x", DType::float32, {rows, columns}, {1, rows});
        Halide::Func copy = named_func("copy");
        const std::vector<Halide::Var> d = argument_vars(2);
        copy(d) = read(x, {d[0], d[1]}) * 2.0F;
        b.stage(copy, {rows, columns});
        b.output("copy");
        const Kernel kernel = b.finish();
        HostTensor input = HostTensor::zeros(DType::float32, {columns, rows});
        auto *values = reinterpret_cast<float *>(input.mutable_data());
        for (int at = 0; at < rows * columns; at++) {
            values[at] = static_cast<float>(at);
        }
        input.meta.sizes = {rows, columns};
        input.meta.strides = {1, rows};
        const Directives directives = default_cpu_schedule(kernel);
        CHECK(has_directive(directives, "x.in(copy)", "compute_at"));
        const std::vector<float> out = values_of<float>(run_on_cpu(kernel, directives, {input})[0]);
        bool same = true;
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                same = same && out[r * columns + c] == 2.0F * static_cast<float>(c * rows + r);
            }
        }
        CHECK(same);
    }
}
