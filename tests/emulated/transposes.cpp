// Transposes whose sizes divide by nothing go through tiles in shared memory; emulated against the CPU target.
#include <doctest/doctest.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string transposed(const std::string &type, const std::string &from, const std::string &to, const std::string &dims) {
    return "%x : " + type + "[" + from + "] = placeholder\n%t : " + type + "[" + to +
           "] = call_function aten.permute.default(self=%x, dims=[" + dims + "])\n%y : " + type + "[" + to +
           "] = call_function aten.mul.Tensor(self=%t, other=2)\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("odd sizes, several types and planes") {
    CHECK(check_emulated(transposed("float16", "117, 71", "71, 117", "1, 0").c_str(), {}, 1e-3) == "");
    CHECK(check_emulated(transposed("float32", "65, 130", "130, 65", "1, 0").c_str()) == "");
    CHECK(check_emulated(transposed("bfloat16", "3, 37, 83", "3, 83, 37", "0, 2, 1").c_str(), {}, 1e-2) == "");
}

TEST_CASE("the tensor is read along its own rows") {
    const auto kernels = kernels_from(transposed("float16", "117, 71", "71, 117", "1, 0").c_str());
    const GpuFacts facts = gpu_facts("sm_90a");
    const std::string source = lower_cuda(kernels[0], default_cuda_schedule(kernels[0], facts), facts).source;
    CHECK(source.find("__shared__ tw::shared_array<tw::half") != std::string::npos);
}

TEST_CASE("even sizes pass through tiles of squares in shared memory") {
    CHECK(check_emulated(transposed("bfloat16", "128, 192", "192, 128", "1, 0").c_str(), {}, 1e-2) == "");
    CHECK(check_emulated(transposed("float32", "96, 64", "64, 96", "1, 0").c_str()) == "");
    CHECK(check_emulated(transposed("float64", "48, 32", "32, 48", "1, 0").c_str()) == "");
    CHECK(check_emulated(transposed("int8", "128, 128", "128, 128", "1, 0").c_str()) == "");
}

TEST_CASE("tiles that the tensor does not fill") {
    CHECK(check_emulated(transposed("float16", "136, 72", "72, 136", "1, 0").c_str(), {}, 1e-3) == "");
    CHECK(check_emulated(transposed("float32", "2, 100, 36", "2, 36, 100", "0, 2, 1").c_str()) == "");
}

TEST_CASE("channels last to channels first: rows and columns of an image are one dimension") {
    const std::string program = transposed("float16", "2, 12, 12, 72", "2, 72, 12, 12", "0, 3, 1, 2");
    CHECK(check_emulated(program.c_str(), {}, 1e-3) == "");
    const auto kernels = kernels_from(program.c_str());
    const GpuFacts facts = gpu_facts("sm_90a");
    const std::string source = lower_cuda(kernels[0], default_cuda_schedule(kernels[0], facts), facts).source;
    CHECK(source.find("__shared__ tw::shared_array<tw::half") != std::string::npos);
    CHECK(source.find("tw::load<8>(in0") != std::string::npos);
    CHECK(source.find("tw::store<8>(out0") != std::string::npos);
}
