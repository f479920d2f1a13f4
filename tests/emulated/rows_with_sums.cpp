// Sums over rows beside the rows, a row a warp: numbers of rows that divide by nothing, rows that leave lanes idle.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string difference(int rows, int columns) {
    const std::string lines = fmt::format(
        "%x : float32[{0}, {1}] = placeholder\n%m : float32[{0}, 1] = call_function aten.mean.dim(self=%x, dim=[-1], keepdim=true)\n"
        "%y : float32[{0}, {1}] = call_function aten.sub.Tensor(self=%x, other=%m)\n"
        "%s : float32[{1}] = call_function aten.sum.dim_IntList(self=%y, dim=[0])\n%output = output(values=[%y, %s])",
        rows, columns);
    const Kernel kernel = kernels_from(lines.c_str()).front();
    const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
    CHECK(print(directives).find("row_in_block") != std::string::npos);
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    return first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 2e-5);
}

}  // namespace

TEST_CASE("a warp takes row after row") {
    CHECK(difference(37, 512) == "");
    CHECK(difference(601, 520) == "");
}
