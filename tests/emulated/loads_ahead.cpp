// Rows whose loads are under way while rows before them are computed, through a ring in shared memory.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

Kernel softmax(const std::string &type, int rows, int columns) {
    return kernels_from(
               fmt::format("%x : {0}[{1}, {2}] = placeholder\n%y : {0}[{1}, {2}] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                           "%output = output(values=[%y])",
                           type, rows, columns)
                   .c_str())
        .front();
}

struct Rows {
    std::int64_t each = 4;  ///< of a block
    std::int64_t threads = 64;
    std::int64_t blocks = 1;  ///< of a cluster
    std::int64_t stages = 3;
};

ScheduleBuilder schedule(const Kernel &kernel, std::int64_t columns, const Rows &rows) {
    ScheduleBuilder s;
    const std::string last = kernel.algorithm.outputs[0].stage;
    s[last].split("d1", "vectors", "lane", 8).vectorize("lane");
    const std::string row = rows.stages == 1 ? "d0" : "row_i", outer = rows.stages == 1 ? "d0" : "rows";
    if (rows.stages > 1) {
        s[last].split("d0", outer, row, rows.each);
    }
    const std::string along = rows.blocks > 1 ? "own" : "vectors";
    if (rows.blocks > 1) {
        s[last].split("vectors", "part", "own", columns / 8 / rows.blocks);
    }
    s[last].split(along, "step", "thread", rows.threads).unroll("step");
    rows.blocks > 1 ? s[last].gpu_blocks("part", outer).cluster(rows.blocks, 1) : s[last].gpu_blocks(outer);
    s[last].gpu_threads("thread").pipeline(row, rows.stages);
    for (const Stage &stage : kernel.algorithm.stages) {
        if (stage.func.function().has_update_definition()) {
            s[stage.name()].compute_at(last, row).reduce_across(rows.blocks > 1 ? "cluster" : "block");
        }
    }
    return s;
}

std::string difference(const std::string &type, int count, int columns, const Rows &rows) {
    const Kernel kernel = softmax(type, count, columns);
    const ScheduleBuilder s = schedule(kernel, columns, rows);
    CHECK(lower_cuda(kernel, s.directives, gpu_facts("sm_90a")).source.find("tw::copy_ahead") != std::string::npos);
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    return first_difference(run_emulated(kernel, s.directives, inputs), run_on_cpu(kernel, {}, inputs, {}),
                            type == "float32" ? 2e-5 : 1e-2);
}

}  // namespace

TEST_CASE("whole rows, a last block with fewer, and fewer rows than stages") {
    CHECK(difference("float32", 12, 1024, {}) == "");
    CHECK(difference("bfloat16", 13, 1000, {}) == "");
    CHECK(difference("float16", 7, 1024, {.each = 2, .stages = 5}) == "");
}

TEST_CASE("rows that a cluster shares") { CHECK(difference("bfloat16", 12, 2048, {.blocks = 2, .stages = 2}) == ""); }

TEST_CASE("a row lies in shared memory instead of its block's registers") {
    CHECK(difference("bfloat16", 5, 2048, {.blocks = 2, .stages = 1}) == "");
    CHECK(difference("float32", 5, 1016, {.stages = 1}) == "");
}

TEST_CASE("a pipeline runs along a serial loop") {
    const Kernel kernel = softmax("float32", 8, 1024);
    ScheduleBuilder s;
    s[kernel.algorithm.outputs[0].stage].gpu_blocks("d0").gpu_threads("d1").pipeline("d0", 3);
    CHECK_THROWS_WITH_AS(lower_cuda(kernel, s.directives, gpu_facts("sm_90a")), doctest::Contains("ahead of a serial loop's iterations"),
                         UserError);
}
