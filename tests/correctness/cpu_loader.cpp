// Compiled kernels in this process: several at once, from several threads, gone with their last copy.
#include <doctest/doctest.h>

#include <HalideRuntime.h>

#include <algorithm>
#include <thread>

#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/cpu/compile.h"
#include "runtime/cpu/loader.h"
#include "tests/support/hand_written.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Calls the kernel on buffers of its own, `count` times.
bool run_repeatedly(const HandWritten &h, CpuFunction function, int count) {
    std::vector<TensorMeta> metas;
    for (const TensorInput &input : h.kernel.algorithm.inputs) {
        metas.push_back(input.meta);
    }
    metas.push_back(h.kernel.algorithm.outputs[0].meta);
    std::vector<float> result(h.expected.size());
    std::vector<halide_buffer_t> buffers(metas.size());
    std::vector<std::vector<halide_dimension_t>> dimensions(metas.size());
    std::vector<void *> arguments;
    for (std::size_t i = 0; i < metas.size(); i++) {
        for (int d = 0; d < metas[i].rank(); d++) {
            dimensions[i].emplace_back(0, static_cast<int>(metas[i].sizes[d].value()), static_cast<int>(metas[i].strides[d].value()));
        }
        buffers[i].type = halide_type_of<float>();
        buffers[i].dimensions = metas[i].rank();
        buffers[i].dim = dimensions[i].data();
        const void *data = i < h.inputs.size() ? static_cast<const void *>(h.inputs[i].data()) : result.data();
        buffers[i].host = static_cast<std::uint8_t *>(const_cast<void *>(data));
        arguments.push_back(&buffers[i]);
    }
    bool is_right = true;
    for (int i = 0; i < count; i++) {
        std::fill(result.begin(), result.end(), 0.0F);
        is_right = is_right && function(arguments.data()) == 0 && largest_error(result, h.expected) <= h.tolerance;
    }
    return is_right;
}

}  // namespace

TEST_CASE("threads share a parallel kernel") {
    const HandWritten h = softmax(64, 100);
    ScheduleBuilder schedule;
    schedule["y"].parallel("d0");
    for (const char *stage : {"row_max", "exp", "row_sum"}) {
        schedule[stage].compute_at("y", "d0");
    }
    const CompiledKernel compiled = compile_cpu(h.kernel, schedule.directives);
    const CpuCode code = CpuCode::load(compiled.code[0].image, "softmax");
    const CpuFunction function = code.function(std::get<CpuStep>(compiled.steps[0].action).function);
    std::vector<char> right(4, 0);
    std::vector<std::thread> threads;
    for (char &r : right) {
        threads.emplace_back([&] { r = run_repeatedly(h, function, 50) ? 1 : 0; });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(std::count(right.begin(), right.end(), 1) == 4);
}

TEST_CASE("one object loaded twice, and a function that it has not") {
    const HandWritten h = pointwise_chain(3, 20);
    const CompiledKernel compiled = compile_cpu(h.kernel, {});
    const std::string &name = std::get<CpuStep>(compiled.steps[0].action).function;
    auto first = std::make_unique<CpuCode>(CpuCode::load(compiled.code[0].image, "chain"));
    const CpuCode second = CpuCode::load(compiled.code[0].image, "chain");
    const bool is_one = first->function(name) == second.function(name);
    CHECK_FALSE(is_one);
    first.reset();
    CHECK(run_repeatedly(h, second.function(name), 2));
    CHECK_THROWS_WITH_AS(second.function("nothing"), doctest::Contains("the object file of chain has no function nothing"), InternalError);
    CHECK(halide_runtime_function("halide_set_num_threads") != nullptr);
    CHECK(halide_runtime_function("halide_no_such_function") == nullptr);
}
