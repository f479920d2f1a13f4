// Directives around `stream` that do not fit the kernel: each is refused with its cause and a repair.
#include <doctest/doctest.h>

#include "dsl/schedule/builder.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/streaming_schedule.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using tests::says;

namespace {

Kernel attention(const std::string &type) {
    const std::string shape = type + "[1, 2, 128, 64]";
    const std::string lines =
        "%q : " + shape + " = placeholder\n%k : " + shape + " = placeholder\n%v : " + shape + " = placeholder\n%y : " + shape +
        " = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v)\n%output = output(values=[%y])";
    Program program = tests::program_from(lines.c_str());
    functionalize(program);
    decompose(program);
    FusionOptions options;
    options.streaming = true;
    return partition(translate(program).algorithm, options).kernels.at(0);
}

/// The default way of streaming, with one directive's text replaced.
std::string refusal(const std::string &old_text, const std::string &new_text) {
    const Kernel kernel = attention("bfloat16");
    const auto form = match_streaming(kernel.algorithm, gpu_facts("sm_90a"));
    REQUIRE(form);
    std::string text = print(streaming_schedule(*form, kernel.algorithm, {64, 2, 2, 1, true, 1}));
    REQUIRE(text.find(old_text) != std::string::npos);
    text.replace(text.find(old_text), old_text.size(), new_text);
    return tests::refusal_of([&] { lower_cuda(kernel, parse_directives(text, "test"), gpu_facts("sm_90a")); });
}

}  // namespace

TEST_CASE("what streams needs a form, an outer loop and the matrix unit") {
    CHECK(refusal("so, si, 64", "so, si, 64") == "");
    CHECK(says(refusal("so, si, 64", "so, si, 40"),
               "a step of 40 is no width that the matrix unit has; split by a multiple of 16 up to 256"));
    CHECK(says(refusal("stream(so", "stream(si"),
               "it streams along no outer part of its reduction; split r0 and stream along the outer loop"));
    CHECK(says(refusal("warpgroups(2)", "warpgroups(5)"), "5 warpgroups do not share a block; give 1, 2 or 3"));
    CHECK(says(refusal("tensor_core(64, 64, 16)", "tensor_core(64, 32, 16)"),
               "it is not multiplied by the matrix unit; add tensor_core(64, 64, 16)"));
}

TEST_CASE("float32 does not stream") {
    const Kernel kernel = attention("float32");
    CHECK(!match_streaming(kernel.algorithm, gpu_facts("sm_90a")));
    ScheduleBuilder s;
    s["dot_1"].split("r0", "so", "si", 64).stream("so", "amax", "sum");
    CHECK_THROWS_WITH_AS(lower_cuda(kernel, s.directives, gpu_facts("sm_90a")),
                         doctest::Contains("its kernel is no pair of half-precision products"), UserError);
}
