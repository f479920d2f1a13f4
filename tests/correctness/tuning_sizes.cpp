// Variants of a kernel with symbolic extents: a boundary for each size at which another schedule is faster, and the usual one as `else`.
#include <doctest/doctest.h>

#include "autotune/size_variants.h"
#include "tests/support/hand_written.h"

using namespace tilewright;

namespace {

Directives blocks_of(int threads) {
    return parse_directives("y.split(d1, block, thread, " + std::to_string(threads) + ").gpu_blocks(block)", "test");
}

}  // namespace

TEST_CASE("schedules of other sizes become variants by extent") {
    Kernel kernel = tests::pointwise_chain(64, 256).kernel;
    Stage &stage = kernel.algorithm.stages.back();
    stage.extents[1] = Extent::symbol("s0");
    const SymbolValues usual{{"s0", 64}};
    const std::vector<ScheduleVariant> variants = variants_by_size(
        kernel.algorithm, usual, blocks_of(128), {{{{"s0", 4}}, blocks_of(32)}, {{{"s0", 1024}}, blocks_of(512)}, {usual, blocks_of(64)}});
    REQUIRE(variants.size() == 3);
    REQUIRE(variants[0].conditions.size() == 1);
    CHECK(variants[0].conditions[0].to_string().find(".d1 <= 16") != std::string::npos);
    CHECK(variants[0].directives == blocks_of(32));
    CHECK(variants[1].conditions[0].to_string().find(".d1 > 256") != std::string::npos);
    CHECK(variants[1].directives == blocks_of(512));
    CHECK(variants[2].conditions.empty());
    CHECK(variants[2].directives == blocks_of(128));
}
