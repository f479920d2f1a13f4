// What the search and `explain` say of a kernel's resources and of the least time that it can take.
#include <doctest/doctest.h>

#include "autotune/measure/resources.h"
#include "autotune/measure/roofline.h"
#include "tests/support/hand_written.h"

using namespace tilewright;

TEST_CASE("occupancy: threads, registers or shared memory bound the blocks of a multiprocessor") {
    const GpuFacts &facts = gpu_facts("sm_90a");
    CHECK(occupancy(facts, 256, 32, 0) == 100);
    CHECK(occupancy(facts, 256, 64, 0) == 50);
    CHECK(occupancy(facts, 256, 65, 0) == 37);  // 72 registers a thread are allocated
    CHECK(occupancy(facts, 1024, 64, 0) == 50);
    CHECK(occupancy(facts, 1024, 40, 0) == 50);  // two blocks would need more than there are
    CHECK(occupancy(facts, 32, 16, 0) == 50);    // 32 blocks of one warp
    CHECK(occupancy(facts, 128, 32, 100 * 1024) == 12);
    CHECK(occupancy(facts, 1024, 128, 0) == 0);  // does not fit at all
}

TEST_CASE("the resources of a kernel are the most that any of its launches takes") {
    CompiledKernel kernel;
    kernel.code.resize(2);
    kernel.code[0].registers = 64;
    kernel.code[1].registers = 32;
    kernel.code[1].spill_loads = 8;
    for (const int code : {0, 1}) {
        LaunchStep launch;
        launch.code = code;
        launch.block = {256, 1, 1};
        launch.dynamic_shared_bytes = 1000 * code;
        kernel.steps.emplace_back().action = launch;
    }
    const Resources resources = resources_of(kernel, &gpu_facts("sm_90a"));
    CHECK(resources.registers == 64);
    CHECK(resources.spill_bytes == 8);
    CHECK(resources.shared_bytes == 1000);
    CHECK(resources.occupancy == 50);
}

TEST_CASE("the roofline counts what is read once, of a gathered table what the places need") {
    const GpuFacts &facts = gpu_facts("sm_90a");
    const Roofline rows = roofline(tests::softmax(64, 128).kernel.algorithm, {}, facts);
    CHECK(rows.bytes == 2 * 64 * 128 * 4);
    CHECK(rows.float_flops == 0);
    CHECK(rows.seconds == doctest::Approx(rows.bytes / facts.memory_bandwidth));
    const Roofline gather = roofline(tests::gather_rows(40, 8, 16).kernel.algorithm, {}, facts);
    CHECK(gather.bytes == 2 * 16 * 8 * 4 + 16 * 8);
    const Roofline product = roofline(tests::product(64, 32, 16, false).kernel.algorithm, {}, facts);
    CHECK(product.float_flops + product.matrix_flops == 2 * 64 * 32 * 16);
}
