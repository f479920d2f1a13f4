// Elements that threads read one by one stay in registers from one exchange to the next.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

TEST_CASE("short rows are read once") {
    const Kernel kernel = kernels_from(
                              "%x : float32[70, 21] = placeholder\n%y : float32[70, 21] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                              "%output = output(values=[%y])")
                              .front();
    const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
    CHECK(lower_cuda(kernel, directives, gpu_facts("sm_90a")).source.find("_held[") != std::string::npos);
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    CHECK(first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 2e-5) == "");
}
