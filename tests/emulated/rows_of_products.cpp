// Reductions along the rows of a product in its own launch, on the host emulation, against the CPU target.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/cuda_schedules/product_schedule.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/program_text.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

const GpuFacts facts = gpu_facts("sm_90a");

/// The program is one kernel, which agrees with the CPU target when tiles of `width` columns share its rows.
std::string check_rows(const std::string &lines, int width, int blocks, bool persistent) {
    FusionOptions options;
    options.finishes_rows = true;
    options.can_finish_rows = [](const Algorithm &) { return true; };
    Program program = program_from(lines.c_str());
    functionalize(program);
    decompose(program);
    const Translated translated = translate(program);
    const Partition groups = partition(translated.algorithm, options);
    REQUIRE(groups.kernels.size() == 1);
    const auto product = match_matrix_product(groups.kernels[0], facts);
    REQUIRE(product);
    ProductTile tile{64, width, 1, 2, 8};
    tile.row_blocks = blocks;
    tile.persistent = persistent;
    const std::vector<HostTensor> inputs = random_inputs(groups.kernels[0], {}, 1);
    const Directives directives = product_schedule(*product, tile);
    return first_difference(run_emulated(groups.kernels[0], directives, inputs, {}, facts), run_on_cpu(groups.kernels[0], {}, inputs, {}),
                            2e-2);
}

const std::string linear = R"(%x : bfloat16[150, 128] = placeholder
%w : bfloat16[320, 128] = placeholder
%r : bfloat16[150, 320] = placeholder
%l : bfloat16[150, 320] = call_function aten.linear.default(input=%x, weight=%w)
%s : bfloat16[150, 320] = call_function aten.add.Tensor(self=%l, other=%r)
)";

}  // namespace

TEST_CASE("a layer norm behind a residual: blocks of a cluster combine their rows") {
    const std::string norm = linear +
                             "%g : bfloat16[320] = placeholder\n%y : bfloat16[150, 320] = call_function aten.layer_norm.default(input=%s, "
                             "normalized_shape=[320], weight=%g)\n"
                             "%output = output(values=[%y])";
    CHECK(check_rows(norm, 64, 5, false) == "");
    CHECK(check_rows(norm, 128, 3, true) == "");
}

TEST_CASE("a root mean square norm whose operand is stored too, and a softmax of logits that are not") {
    CHECK(check_rows(linear + "%y : bfloat16[150, 320] = call_function aten.rms_norm.default(input=%s, normalized_shape=[320], "
                              "eps=1e-05)\n%output = output(values=[%s, %y])",
                     160, 2, true) == "");
    CHECK(check_rows("%x : float16[70, 64] = placeholder\n%w : float16[96, 64] = placeholder\n%l : float16[70, 96] = call_function "
                     "aten.linear.default(input=%x, weight=%w)\n"
                     "%y : float16[70, 96] = call_function aten.softmax.int(self=%l, dim=-1)\n%output = output(values=[%y])",
                     96, 1, true) == "");
}

TEST_CASE("rows that the tiles do not hold are refused") {
    const std::string norm = linear +
                             "%y : bfloat16[150, 320] = call_function aten.rms_norm.default(input=%s, normalized_shape=[320], "
                             "eps=1e-05)\n%output = output(values=[%y])";
    CHECK_THROWS_WITH_AS(check_rows(norm, 64, 2, false),
                         doctest::Contains("5 blocks hold one; write cluster(5, 1), or make the tiles wider"), UserError);
}
