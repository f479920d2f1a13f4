// Choices by place in emitted code: wide accesses under conditions that whole vectors share, no condition where a place decides it.
#include <doctest/doctest.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;

namespace {

std::string sources_of(const std::string &lines) {
    std::string all;
    const GpuFacts &facts = gpu_facts("sm_90a");
    for (const Kernel &kernel : tests::kernels_from(lines.c_str())) {
        all += lower_cuda(kernel, default_cuda_schedule(kernel, facts), facts).source;
    }
    return all;
}

const char *bilinear =
    "%x : float32[2, 3, 12, 16] = placeholder\n"
    "%y : float32[2, 3, 36, 48] = call_function aten.upsample_bilinear2d.vec(input=%x, output_size=none, align_corners=false, "
    "scale_factors=[3.0, 3.0])\n"
    "%output = output(values=[%y])";

}  // namespace

TEST_CASE("places of an interpolation are known to lie inside: they are computed in 32 bits and not checked") {
    const std::string source = sources_of(bilinear);
    CHECK_MESSAGE(source.find("checked_index") == std::string::npos, source);
    CHECK(tests::check_emulated(bilinear) == "");
}

TEST_CASE("a pool's later taps ask for no border") {
    const std::string source = sources_of(
        "%x : float32[8, 16, 56, 56] = placeholder\n"
        "%y : float32[8, 16, 28, 28] = call_function aten.max_pool2d.default(self=%x, kernel_size=[3, 3], stride=[2, 2], padding=[1, "
        "1])\n%output = output(values=[%y])");
    CHECK_MESSAGE(source.find("_i >= 1) ||") != std::string::npos, source);
}

TEST_CASE("halves that were swapped are read by wide accesses, each under the condition that chooses it") {
    const std::string source = sources_of(
        "%x : bfloat16[512, 128] = placeholder\n%a : bfloat16[512, 64] = call_function aten.slice.Tensor(self=%x, dim=1, start=0, end=64)\n"
        "%b : bfloat16[512, 64] = call_function aten.slice.Tensor(self=%x, dim=1, start=64, end=128)\n"
        "%s : bfloat16[512, 128] = call_function aten.cat.default(tensors=[%b, %a], dim=1)\n"
        "%y : bfloat16[512, 128] = call_function aten.mul.Tensor(self=%x, other=%s)\n%output = output(values=[%y])");
    CHECK_MESSAGE(source.find("in0_2_vec = tw::load<8>(in0") != std::string::npos, source);
    CHECK_MESSAGE(source.find("minimum(") == std::string::npos, source);
}

TEST_CASE("rows that an index scatters are added by wide accesses") {
    const std::string source = sources_of(
        "%x : float32[64, 128] = placeholder\n%i : int64[512] = placeholder\n%v : float32[512, 128] = placeholder\n"
        "%y : float32[64, 128] = call_function aten.index_add.default(self=%x, dim=0, index=%i, source=%v)\n%output = output(values=[%y])");
    CHECK_MESSAGE(source.find("tw::atomic_sum<4>(out0") != std::string::npos, source);
    CHECK_MESSAGE(source.find("tw::load<4>(in") != std::string::npos, source);
}
