// Elements whose number no vector divides: all but the last few go in whole vectors, where tensors are dense and their types narrow.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string scaled_rows(const std::string &type, int rows, int columns) {
    const std::string matrix = fmt::format("{}[{}, {}]", type, rows, columns);
    return fmt::format(
        "%x : {0} = placeholder\n%b : {1}[{2}] = placeholder\n%y : {0} = call_function aten.mul.Tensor(self=%x, other=%b)\n%output = "
        "output(values=[%y])",
        matrix, type, columns);
}

std::string squared(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%y : {0}[{1}, {2}] = call_function aten.mul.Tensor(self=%x, other=%x)\n%output = "
        "output(values=[%y])",
        type, rows, columns);
}

std::string default_of(const std::string &lines) {
    return print(default_cuda_schedule(kernels_from(lines.c_str()).front(), gpu_facts("sm_90a")));
}

}  // namespace

TEST_CASE("vectors over all elements, and an edge") {
    const auto in_vectors = [](const Kernel &kernel) -> std::optional<Directives> {
        const std::string &stage = kernel.algorithm.outputs[0].stage;
        return parse_directives(stage + ".fuse(d0, d1, flat).align(flat, 8).split(flat, vectors, lane, 8).vectorize(lane)\n" + stage +
                                    ".split(vectors, block, thread, 32).gpu_blocks(block).gpu_threads(thread)",
                                "test");
    };
    for (const auto &[rows, columns] : {std::pair{67, 63}, {3, 5}, {9, 257}, {8, 32}}) {
        CHECK(check_scheduled(scaled_rows("float16", rows, columns), in_vectors, gpu_facts("sm_90a"), 2e-3) == "");
    }
}

TEST_CASE("many narrow elements are scheduled so, others as they were") {
    CHECK(default_of(squared("bfloat16", 1025, 1025)).find("align(flat, 8)") != std::string::npos);
    CHECK(default_of(squared("float32", 1025, 1025)).find("align(") == std::string::npos);
    CHECK(default_of(squared("bfloat16", 1025, 1024)).find("align(") == std::string::npos);
    CHECK(default_of(squared("bfloat16", 25, 25)).find("align(") == std::string::npos);
}
