// Sums of columns and what each row takes of them, where rows are odd in number and length: threads lie as the rows do, and the last round
// asks who is inside.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string column_sum(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%s : {0}[{2}] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n%output = "
        "output(values=[%s])",
        type, rows, columns);
}

std::string without_means(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%m : {0}[{2}] = call_function aten.mean.dim(self=%x, dim=[0])\n"
        "%y : {0}[{1}, {2}] = call_function aten.sub.Tensor(self=%x, other=%m)\n%output = output(values=[%y])",
        type, rows, columns);
}

std::string default_of(const std::string &lines) {
    return print(default_cuda_schedule(kernels_from(lines.c_str()).front(), gpu_facts("sm_90a")));
}

}  // namespace

TEST_CASE("sums of few, odd and many columns") {
    for (const auto &[rows, columns] : {std::pair{1301, 3}, {1300, 4}, {517, 37}, {259, 211}, {133, 300}, {4096, 8}}) {
        CHECK(check_emulated(column_sum("float32", rows, columns).c_str()) == "");
        CHECK(check_emulated(column_sum("float16", rows, columns).c_str(), {}, 2e-3) == "");
    }
}

TEST_CASE("rounds that lie inside go as a whole, and the last ones step by step") {
    const auto in_rounds = [](const Kernel &kernel) -> std::optional<Directives> {
        const std::string &stage = kernel.algorithm.outputs[0].stage;
        return parse_directives(
            stage + ".split(d0, block, thread, 37).gpu_blocks(block).split(r0, step, share, 5).gpu_threads(thread, share)\n" + stage +
                ".reduce_across(block).split(step, round, at_once, 4).unroll(at_once).sum_apart().split_blocks(round, 3)",
            "test");
    };
    for (const int rows : {59, 60, 61, 301, 420}) {
        CHECK(check_scheduled(column_sum("float32", rows, 37), in_rounds, gpu_facts("sm_90a"), 2e-5) == "");
    }
}

TEST_CASE("a thread keeps to its column where all rows need the same of it") {
    for (const auto &[rows, columns] : {std::pair{67, 63}, {301, 33}, {35, 517}}) {
        CHECK(check_emulated(without_means("float32", rows, columns).c_str()) == "");
        CHECK(check_emulated(without_means("float16", rows, columns).c_str(), {}, 4e-3) == "");
    }
    CHECK(check_emulated(without_means("float32", 3, 0).c_str()) == "");
    CHECK(check_emulated(column_sum("float32", 3, 0).c_str()) == "");
}

TEST_CASE("float32 sums are added up in two levels, neighbouring rows by neighbouring threads") {
    CHECK(default_of(column_sum("float32", 59241, 211)).find("sum_apart") != std::string::npos);
    CHECK(default_of(column_sum("float16", 59241, 211)).find("sum_apart") == std::string::npos);
    CHECK(default_of(column_sum("float16", 300000, 12)).find("split(vectors, block, thread, 3)") != std::string::npos);
}
