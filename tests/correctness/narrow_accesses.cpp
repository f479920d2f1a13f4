// What `explain` says of tensors that are moved in pieces: alignment, stride or the schedule, and nothing where all accesses are wide.
#include <doctest/doctest.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/passes/narrow_accesses.h"
#include "tests/support/partitions.h"

using namespace tilewright;

namespace {

std::vector<NarrowAccess> narrow(const std::string &lines) {
    const Partition partition = tests::partition_of(lines);
    REQUIRE(partition.kernels.size() == 1);
    const GpuFacts &facts = gpu_facts("sm_90a");
    return narrow_accesses(lower_to_tiles(partition.kernels[0], default_cuda_schedule(partition.kernels[0], facts), facts));
}

}  // namespace

TEST_CASE("wide accesses are not mentioned") {
    CHECK(narrow("%x : bfloat16[512, 1024] = placeholder\n%y : bfloat16[512, 1024] = call_function prims.neg(a=%x)\n%output = "
                 "output(values=[%y])")
              .empty());
}

TEST_CASE("a stride that is no multiple of 16 bytes is the reason for narrow accesses") {
    const auto found = narrow(
        "%x : float32[512, 1022] strides=[1026, 1] = placeholder\n"
        "%y : float32[512, 1022] = call_function prims.neg(a=%x)\n%output = output(values=[%y])");
    REQUIRE(found.size() >= 1);
    CHECK(found[0].tensor == "in0");
    CHECK_FALSE(found[0].writes);
    CHECK(found[0].bytes == 4);
    CHECK(found[0].reason == "stride 1026 of dimension 0 is 8 modulo 16 bytes");
}

TEST_CASE("tensors of a few elements are not mentioned") {
    CHECK(narrow("%x : bfloat16[3, 5] = placeholder\n%y : bfloat16[3, 5] = call_function prims.neg(a=%x)\n%output = output(values=[%y])")
              .empty());
}
