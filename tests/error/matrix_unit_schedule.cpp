// Schedules that ask the matrix unit for what it cannot do are refused with cause and repair.
#include <doctest/doctest.h>

#include "dsl/schedule/builder.h"
#include "lowering/cuda/lower.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

Kernel product_of(const char *type) {
    const std::string t = type;
    Program program = program_from(("%a : " + t + "[256, 512] = placeholder\n%b : " + t + "[512, 256] = placeholder\n%y : " + t +
                                    "[256, 256] = call_function aten.mm.default(self=%a, mat2=%b)\n%output = output(values=[%y])")
                                       .c_str());
    functionalize(program);
    decompose(program);
    return partition(translate(program).algorithm).kernels.at(0);
}

struct Tile {
    int height = 128, width = 128, unit_rows = 64, unit_width = 128, warpgroups = 2, stages = 4;
};
std::string refusal(const Kernel &kernel, const Tile &tile, int parts = 1, int cluster = 1, bool persistent = false,
                    bool sums_apart = false, std::pair<int, int> bounds = {}) {
    ScheduleBuilder builder;
    const std::string anchor = kernel.algorithm.outputs[0].stage;
    builder[anchor].tile("d0", "d1", "mo", "no", "mi", "ni", tile.height, tile.width).gpu_blocks("no", "mo");
    StageSchedule dot = builder["dot"];
    if (anchor != "dot") {
        dot.compute_at(anchor, "no").store_in("register");
    }
    dot.tensor_core(tile.unit_rows, tile.unit_width, 16)
        .warpgroups(tile.warpgroups)
        .split("r0", "ko", "ki", 64)
        .pipeline("ko", tile.stages);
    if (parts > 1) {
        dot.split_blocks("ko", parts);
    }
    if (cluster > 1) {
        dot.cluster(cluster, 1);
    }
    if (persistent) {
        dot.persistent();
    }
    if (sums_apart) {
        dot.sum_apart();
    }
    if (bounds.first > 0) {
        dot.launch_bounds(bounds.first, bounds.second);
    }
    return tests::refusal_of([&] { lower_cuda(kernel, builder.directives, gpu_facts("sm_90a")); });
}

}  // namespace

TEST_CASE("tiles that the unit does not have") {
    const Kernel product = product_of("bfloat16");
    CHECK(refusal(product, {}) == "");
    CHECK(says(refusal(product, {128, 128, 64, 128, 2, 1}),
               "with one stage nothing can be loaded while the unit multiplies; give pipeline 2 stages or more"));
    CHECK(says(refusal(product, {128, 128, 32, 128}), "the unit of Hopper multiplies 64 rows, 16 deep"));
    CHECK(says(refusal(product, {128, 128, 64, 64}), "its tiles are 128 wide"));
    CHECK(says(refusal(product, {64, 128, 64, 128}), "tiles 64 high do not divide among 2 warpgroups"));
    CHECK(says(refusal(product, {256, 256, 64, 256, 1}), "each thread would hold 512 sums"));
    CHECK(refusal(product, {32, 64, 64, 32, 1}) == "");
    CHECK(says(refusal(product, {32, 128, 64, 32, 1}), "128 of the output's columns are the rows of 1 warpgroups"));
}

TEST_CASE("blocks that a multiprocessor does not hold together") {
    const Kernel product = product_of("bfloat16");
    CHECK(says(refusal(product, {}, 1, 1, false, false, {256, 1}),
               "its block has 384 threads: 2 warpgroups and the producer's; write launch_bounds(384, 1)"));
    CHECK(says(
        refusal(product, {}, 1, 1, false, false, {384, 4}),
        "multiplying 128 columns takes 90 registers of a thread, and 4 blocks of 384 threads leave 40; give launch_bounds fewer blocks, or "
        "make the tile narrower"));
    CHECK(says(refusal(product, {64, 64, 64, 64, 1, 8}, 1, 1, false, false, {256, 3}),
               "3 blocks of it do not fit in a multiprocessor's shared memory; give pipeline fewer stages"));
    CHECK(says(refusal(product, {128, 128, 64, 128, 2, 2}, 1, 1, false, false, {384, 2}),
               "multiplying 128 columns takes 90 registers of a thread, and 2 blocks of 384 threads leave 80"));
    CHECK(refusal(product, {128, 64, 64, 64, 2, 2}, 1, 1, false, false, {384, 2}) == "");
    CHECK(says(refusal(product, {192, 256, 64, 256, 3, 2}), "leave 128; make the tile narrower, or give it fewer warpgroups"));
}

TEST_CASE("operands that the unit does not multiply") {
    CHECK(says(refusal(product_of("float32"), {}), "add precision(tf32)"));
    CHECK(says(refusal(product_of("bfloat16"), {}, 1, 1, false, true), "only sums of float8 products lose bits"));
}

TEST_CASE("floats of 8 bits are converted before they are computed with") {
    Program program = program_from(
        "%a : float8_e4m3fn[8] = placeholder\n%y : float8_e4m3fn[8] = call_function aten.neg.default(self=%a)\n%output = "
        "output(values=[%y])");
    functionalize(program);
    decompose(program);
    CHECK_THROWS_WITH_AS(translate(program),
                         doctest::Contains("there is no arithmetic of float8_e4m3fn; convert it with .to(torch.float32) first"), UserError);
}

TEST_CASE("blocks that share a product's terms") {
    const Kernel product = product_of("bfloat16");
    CHECK(refusal(product, {}, 2, 2) == "");
    CHECK(refusal(product, {}, 4) == "");
    CHECK(says(refusal(product, {}, 2, 4), "write split_blocks and cluster(2, 1) together"));
    CHECK(says(refusal(product, {}, 2, 1, true), "remove persistent() or split_blocks"));
    CHECK(says(refusal(product, {}, 16, 16), "loop 'ko' has 8 iterations, fewer than the blocks that are to share them; give 8 or fewer"));
}
