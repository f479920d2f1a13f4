// Sorts on the host emulation: rows that a warp, a block and several blocks sort, the first few of a row, every type, both directions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/schedule/builder.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

const GpuFacts facts = gpu_facts("sm_90a");

std::string sort_of(const std::string &type, int rows, int length, bool descending) {
    const std::string shape = "[" + std::to_string(rows) + ", " + std::to_string(length) + "]";
    return "%x : " + type + shape + " = placeholder\n%s : (" + type + shape + ", int64" + shape +
           ") = call_function aten.sort.default(self=%x, dim=1, descending=" + (descending ? "true" : "false") + ")\n%v : " + type + shape +
           " = call_function getitem(tuple=%s, index=0)\n%p : int64" + shape +
           " = call_function getitem(tuple=%s, index=1)\n%output = output(values=[%v, %p])";
}

std::string first_of(const std::string &type, int rows, int length, int count, bool largest) {
    const std::string in = "[" + std::to_string(rows) + ", " + std::to_string(length) + "]",
                      out = "[" + std::to_string(rows) + ", " + std::to_string(count) + "]";
    return "%x : " + type + in + " = placeholder\n%s : (" + type + out + ", int64" + out +
           ") = call_function aten.topk.default(self=%x, k=" + std::to_string(count) + ", dim=-1, largest=" + (largest ? "true" : "false") +
           ")\n%v : " + type + out + " = call_function getitem(tuple=%s, index=0)\n%p : int64" + out +
           " = call_function getitem(tuple=%s, index=1)\n%output = output(values=[%v, %p])";
}

Directives sorted_by(const std::string &level, std::int64_t threads, bool preselect = false) {
    ScheduleBuilder s;
    StageSchedule sort = s["sort_1"];
    sort.sort_across(level);
    if (preselect) {
        sort.preselect();
    }
    if (threads > 0) {
        sort.launch_bounds(threads, 1);
    }
    return s.directives;
}

std::string check(const std::string &program, const Directives &directives) {
    const Kernel kernel = kernels_from(program.c_str()).front();
    std::vector<HostTensor> inputs = random_inputs(kernel, {}, 5);
    if (inputs[0].meta.dtype == DType::float32) {  // equal numbers, both zeros, and what is no number
        auto *values = reinterpret_cast<float *>(inputs[0].mutable_data());
        const auto count = static_cast<std::int64_t>(inputs[0].storage_bytes / sizeof(float));
        for (std::int64_t i = 0; i < count; ++i) {
            const float special[] = {0.0F, -0.0F, NAN, -NAN, INFINITY, -INFINITY};
            values[i] = i % 3 == 0 ? special[i / 3 % 6] : i % 3 == 1 ? std::round(values[i]) : values[i];
        }
    }
    return first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 0);
}

std::string refusal(const std::string &program, const Directives &directives) {
    return tests::refusal_of([&] { lower_to_tiles(kernels_from(program.c_str()).front(), directives, facts); });
}

}  // namespace

TEST_CASE("rows sorted by a warp, by a block and by several blocks") {
    CHECK(check(sort_of("float32", 5, 200, false), sorted_by("warp", 64)) == "");
    CHECK(check(sort_of("float32", 2, 1000, true), sorted_by("block", 0)) == "");
    CHECK(check(sort_of("float32", 2, 300, false), sorted_by("block", 512)) == "");
    CHECK(check(sort_of("float32", 2, 5000, true), sorted_by("grid", 1024)) == "");
    CHECK(check(sort_of("float32", 3, 1, false), {}) == "");
}

TEST_CASE("keys of every width") {
    for (const char *type : {"uint8", "int16", "bfloat16", "float16", "int64", "float64"}) {
        CAPTURE(type);
        CHECK(check(sort_of(type, 2, 70, true), sorted_by("warp", 0)) == "");
        CHECK(check(sort_of(type, 1, 300, false), sorted_by("block", 64)) == "");
    }
    CHECK(check(sort_of("bool", 1, 300, true), sorted_by("block", 0)) == "");
    CHECK(check(sort_of("int64", 1, 4200, false), sorted_by("grid", 512)) == "");
    CHECK(check(sort_of("uint8", 2, 4200, false), sorted_by("grid", 512)) == "");
}

TEST_CASE("the first few of a row") {
    CHECK(check(first_of("float32", 2, 1500, 50, true), sorted_by("block", 128, true)) == "");
    CHECK(check(first_of("int64", 2, 3000, 1, false), {}) == "");
    CHECK(check(first_of("uint8", 1, 5000, 300, true), {}) == "");  // of equal elements the first by place
    CHECK(check(first_of("bfloat16", 3, 200, 8, false), {}) == "");
    CHECK(check(first_of("float32", 1, 60000, 5, true), sorted_by("block", 1024, true)) == "");  // keys in global memory
}

TEST_CASE("what a sort cannot do is refused") {
    CHECK(refusal(sort_of("float32", 2, 300, false), sorted_by("warp", 0)) ==
          "sort_1.sort_across(warp): a warp sorts rows of up to 256 elements, and these have up to 300; use sort_across(block)");
    CHECK(refusal(sort_of("float32", 2, 30000, false), sorted_by("block", 0)).find("use sort_across(grid)") != std::string::npos);
    CHECK(refusal(sort_of("float32", 2, 3000, false), sorted_by("block", 64)).find("give more threads by launch_bounds(1024, 1)") !=
          std::string::npos);
    CHECK(refusal(sort_of("float32", 2, 3000, false), sorted_by("block", 0, true)) ==
          "sort_1.preselect(): the whole row is wanted, or how much of it is not known; remove it");
    CHECK(refusal(first_of("float32", 2, 3000, 5, false), sorted_by("grid", 0, true)).find("use sort_across(block)") != std::string::npos);
    CHECK(refusal(sort_of("float32", 2, 300, false), sorted_by("block", 96)).find("96 threads cannot share a sort") != std::string::npos);
    ScheduleBuilder split;
    split["sort_1"].split("d1", "o", "i", 8).gpu_blocks("o");
    CHECK(refusal(sort_of("float32", 2, 300, false), split.directives).find("the loops of a sort are not scheduled") != std::string::npos);
    ScheduleBuilder elsewhere;
    elsewhere["add"].sort_across("block");
    CHECK(refusal("%x : float32[4] = placeholder\n%add : float32[4] = call_function aten.add.Tensor(self=%x, other=1)\n%output = "
                  "output(values=[%add])",
                  elsewhere.directives) == "add.sort_across(block): stage 'add' sorts nothing; put it on the stage that sorts");
}
