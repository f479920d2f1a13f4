// Which accesses of emitted kernels are wide: what a kernel must move it should move by 16 bytes.
#include <doctest/doctest.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/partitions.h"

using namespace tilewright;

namespace {

/// The emitted source of a one-kernel graph under its default schedule.
std::string source_of(const std::string &lines) {
    const Partition partition = tests::partition_of(lines);
    REQUIRE(partition.kernels.size() == 1);
    const GpuFacts &facts = gpu_facts("sm_90a");
    return lower_cuda(partition.kernels[0], default_cuda_schedule(partition.kernels[0], facts), facts).source;
}
bool has(const std::string &source, const std::string &text) { return source.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("two axes in a row with a broadcast operand: every access is wide") {
    const std::string source = source_of(
        "%x : bfloat16[64, 256] = placeholder\n%b : bfloat16[256] = placeholder\n"
        "%b_wide : bfloat16[64, 256] = call_function prims.broadcast_in_dim(a=%b, size=[64, 256], dims=[1])\n"
        "%y : bfloat16[64, 256] = call_function prims.add(a=%x, b=%b_wide)\n%output = output(values=[%y])\n");
    for (const char *access : {"tw::load<8>(in0", "tw::load<8>(in1", "tw::store<8>(out0"}) {
        CHECK_MESSAGE(has(source, access), access, "\n", source);
    }
}

TEST_CASE("a permuted copy is wide on both sides") {
    const std::string source = source_of(
        "%x : bfloat16[4, 56, 56, 256] = placeholder\n%p : bfloat16[4, 256, 56, 56] = call_function prims.permute(a=%x, dims=[0, 3, 1, "
        "2])\n"
        "%y : bfloat16[4, 256, 56, 56] = call_function prims.neg(a=%p)\n%output = output(values=[%y])\n");
    CHECK_MESSAGE(has(source, "tw::load<8>(in0"), source);
    CHECK_MESSAGE(has(source, "tw::store<8>(out0"), source);
}
