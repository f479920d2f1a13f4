// Schedules of rows that the search proposes: shared by clusters, taken in turn by resident blocks, aligned, several a block.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/cuda_schedules/cuda_space.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/hand_written.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Runs the first `most` candidates whose text has the word; how many ran, and what differed.
struct Tried {
    int ran = 0;
    std::string difference;
};
Tried try_candidates(const HandWritten &program, const std::string &word, int most) {
    const GpuFacts &facts = gpu_facts("sm_90a");
    const std::vector<HostTensor> expected = run_on_cpu(program.kernel, {}, program.inputs, {});
    Tried tried;
    for (const Directives &candidate : cuda_candidates(program.kernel, facts)) {
        if (tried.ran == most || !tried.difference.empty() || print(candidate).find(word) == std::string::npos ||
            !can_lower(program.kernel, candidate, facts)) {
            continue;
        }
        tried.difference = first_difference(run_emulated(program.kernel, candidate, program.inputs), expected, program.tolerance);
        ++tried.ran;
    }
    return tried;
}

void check(const HandWritten &program, const std::string &word) {
    const Tried tried = try_candidates(program, word, 2);
    CHECK_MESSAGE(tried.ran > 0, word);
    CHECK_MESSAGE(tried.difference.empty(), word, ": ", tried.difference);
}

}  // namespace

TEST_CASE("blocks of a cluster share a row") {
    check(softmax(3, 4096), "cluster(2, 1)");
    check(layer_norm(3, 4096), "cluster(4, 1)");
}

TEST_CASE("resident blocks take row after row") { check(layer_norm(37, 256), "row_i"); }

TEST_CASE("rows of odd length") { check(softmax(5, 2051), "align("); }

TEST_CASE("rows come by way of shared memory, ahead of their turn and in it") {
    check(softmax(5, 4096), "pipeline(row_i");
    check(softmax(5, 4096), "pipeline(d0, 1)");
}
