// Schedules that Halide refuses on the CPU: told at the line of the file, in the schedule's names.
#include <doctest/doctest.h>

#include "lowering/cpu/compile.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// What is said of a schedule of the one kernel that `lines` make.
std::string refusal(const char *lines, const char *directives) {
    const Kernel kernel = kernels_from(lines).front();
    return refusal_of([&] { check_cpu(kernel, parse_directives(directives, "m.schedule")); });
}

constexpr const char *softmax =
    "%x : float32[3, 40] = placeholder\n%y : float32[3, 40] = call_function aten.softmax.int(self=%x, dim=-1)\n%output = "
    "output(values=[%y])";
constexpr const char *sorted =
    "%x : float32[3, 40] = placeholder\n%s : (float32[3, 40], int64[3, 40]) = call_function aten.sort.default(self=%x, dim=1)\n"
    "%y : float32[3, 40] = call_function getitem(tuple=%s, index=0)\n%output = output(values=[%y])";

}  // namespace

TEST_CASE("vectors that are too long") {
    const std::string words = refusal(softmax, "div.vectorize(d1)\nexp.compute_root().split(d1, o, i, 1000000).vectorize(i)");
    CHECK_MESSAGE(words.starts_with("m.schedule:2:20: kernel y: "), words);
    CHECK_MESSAGE(says(words, "Halide refuses it: Halide only supports vector types with up to 65535 lanes"), words);
    CHECK(words.find('\n') == std::string::npos);
}

TEST_CASE("a copy that is made where its reader does not stand") {
    const std::string words = refusal(softmax, "amax.compute_root()\nin0.in(amax).compute_at(div, d0)");
    CHECK_MESSAGE(words.starts_with("m.schedule:2:14: kernel y: "), words);
    CHECK_MESSAGE(says(words, "is computed at the following invalid location: in0.in(amax).compute_at(div, d0)"), words);
    CHECK_MESSAGE(!says(words, "_f"), words);
}

TEST_CASE("a sort inside a loop") {
    const std::string words = refusal(sorted, "sort.compute_at(sort_1, d0)");
    CHECK_MESSAGE(
        says(words, "m.schedule:1:6: a sort takes and gives whole tensors: it stands in no loop and has none; use compute_root()"), words);
}
