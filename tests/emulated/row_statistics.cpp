// Statistics of a row that are stored beside the row's elements: folds that none of the elements reads share their pass.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Exponentials below each row's largest element, and their sums; empty where the emulation agrees with the CPU target.
std::string difference(const std::string &leading, int columns, const std::string &sum) {
    const std::string rows = fmt::format("{}, {}", leading, columns), one = leading + ", 1";
    const std::string lines = fmt::format(
        "%x : float32[{0}] = placeholder\n"
        "%m : float32[{1}] = call_function aten.amax.default(self=%x, dim=[-1], keepdim=true)\n"
        "%d : float32[{0}] = call_function aten.sub.Tensor(self=%x, other=%m)\n"
        "%e : float32[{0}] = call_function aten.exp.default(self=%d)\n"
        "%s : float32[{1}] = call_function aten.sum.dim_IntList(self=%e, dim=[-1], keepdim=true)\n{2}"
        "%h : bfloat16[{0}] = call_function aten._to_copy.default(self=%e, dtype=torch.bfloat16)\n",
        rows, one, sum);
    const Kernel kernel = kernels_from((lines + "%output = output(values=[%h, %z])").c_str()).front();
    const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
    const std::string text = print(directives);
    CHECK(text.find("gpu_blocks") == text.rfind("gpu_blocks"));
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    return first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 1e-2);
}

}  // namespace

TEST_CASE("a sum that is stored beside the exponentials that it sums, under axes that are fused to rows") {
    CHECK(difference("2, 3, 17", 128, "%z : float32[2, 3, 17, 1] = call_function aten.clone.default(self=%s)\n") == "");
    CHECK(difference("7", 100, "%z : float32[7, 1] = call_function aten.clone.default(self=%s)\n") == "");
}

TEST_CASE("a value computed from such a sum") {
    CHECK(difference("2, 3, 17", 128, "%z : float32[2, 3, 17, 1] = call_function aten.log.default(self=%s)\n") == "");
}
