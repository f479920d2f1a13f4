// Rows shared by a cluster that parts of whole warps do not fill, and extreme values with their places: ties, NaN, infinities.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

const GpuFacts &facts() { return gpu_facts("sm_90a"); }

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string layer_norm(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%g : {0}[{2}] = placeholder\n%b : {0}[{2}] = placeholder\n"
        "%y : {0}[{1}, {2}] = call_function aten.layer_norm.default(input=%x, normalized_shape=[{2}], weight=%g, bias=%b)\n"
        "%output = output(values=[%y])",
        type, rows, columns);
}

}  // namespace

TEST_CASE("a cluster has no block without a part of the row") {
    const std::string lines = layer_norm("float32", 3, 21332);
    CHECK(has(print(default_cuda_schedule(kernels_from(lines.c_str()).front(), facts())), "cluster(7, 1)"));
    CHECK(check_emulated(lines.c_str(), {}, 1e-4) == "");
}

TEST_CASE("the first of equal extremes, the first NaN, rows of infinities") {
    const std::string lines =
        "%x : float32[6, 1003] = placeholder\n%y : int64[6] = call_function aten.argmax.default(self=%x, dim=1)\n"
        "%z : int64[6] = call_function aten.argmin.default(self=%x, dim=1)\n%output = output(values=[%y, %z])";
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        auto *x = reinterpret_cast<float *>(inputs[0].mutable_data());
        for (int i = 0; i < 1003; ++i) {
            x[i] = i % 7 == 3 ? 5.0F : 1.0F;
            x[1003 + i] = i == 400 || i == 700 ? NAN : static_cast<float>(i);
            x[2 * 1003 + i] = -INFINITY;
            x[3 * 1003 + i] = INFINITY;
            x[4 * 1003 + i] = 0.0F;
        }
        CHECK(first_difference(run_emulated(kernel, default_cuda_schedule(kernel, facts()), inputs), run_on_cpu(kernel, {}, inputs, {}),
                               0) == "");
    }
}
