// Views become index maps: dimensions that correspond are mapped apart, chains of views are composed.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;

namespace {

std::string stages_of(const char *lines) {
    Translated translated = translate(tests::program_from(lines));
    verify(translated.algorithm);
    std::string text;
    for (const Stage &stage : translated.algorithm.stages) {
        text += print(stage);
    }
    return text;
}

TEST_CASE("splitting and merging heads never linearises the whole tensor") {
    CHECK(stages_of("%x : float32[s0, s1, 768] = placeholder\n"
                    "%h : float32[s0, s1, 12, 64] = call_function prims.reshape(a=%x, size=[s0, s1, 12, 64])\n"
                    "%output = output(values=[%h])") == "h[d0: s0, d1: s1, d2: 12, d3: 64] float32 = x(d0, d1, d2 * 64 + d3)\n");
    CHECK(stages_of("%x : float32[s0, s1, 12, 64] = placeholder\n"
                    "%m : float32[s0, s1, 768] = call_function prims.reshape(a=%x, size=[s0, s1, 768])\n"
                    "%output = output(values=[%m])") == "m[d0: s0, d1: s1, d2: 768] float32 = x(d0, d1, d2 / 64, d2 % 64)\n");
    CHECK(stages_of("%x : float32[s0, s1, 12, 64] = placeholder\n"
                    "%m : float32[s0*s1, 1, 768] = call_function prims.reshape(a=%x, size=[s0*s1, 1, 768])\n"
                    "%output = output(values=[%m])") == "m[d0: s0*s1, d1: 1, d2: 768] float32 = x(d0 / s1, d0 % s1, d2 / 64, d2 % 64)\n");
}

TEST_CASE("a chain of views is one stage, a renaming is none") {
    CHECK(stages_of("%x : float32[2, 5, 768] = placeholder\n"
                    "%h : float32[2, 5, 12, 64] = call_function prims.reshape(a=%x, size=[2, 5, 12, 64])\n"
                    "%t : float32[2, 12, 5, 64] = call_function prims.permute(a=%h, dims=[0, 2, 1, 3])\n"
                    "%u : float32[2, 5, 12, 64] = call_function prims.permute(a=%t, dims=[0, 2, 1, 3])\n"
                    "%m : float32[2, 5, 768] = call_function prims.reshape(a=%u, size=[2, 5, 768])\n"
                    "%y : float32[2, 5, 768] = call_function prims.exp(a=%m)\n"
                    "%output = output(values=[%y])") == "y[d0: 2, d1: 5, d2: 768] float32 = exp(x(d0, d1, d2))\n");
    CHECK(stages_of("%x : float32[2, 6] = placeholder\n"
                    "%s : float32[2, 3] = call_function prims.slice(a=%x, dim=1, start=1, end=6, step=2)\n"
                    "%f : float32[2, 3] = call_function prims.flip(a=%s, dims=[1])\n"
                    "%y : float32[2, 3] = call_function prims.exp(a=%f)\n"
                    "%output = output(values=[%y])") ==
          "f[d0: 2, d1: 3] float32 = x(d0, d1 * -2 + 5)\n"
          "y[d0: 2, d1: 3] float32 = exp(f(d0, d1))\n");
}

TEST_CASE("outputs: inputs returned, one value returned twice, layouts kept") {
    Program program = tests::program_from(
        "%x : float32[2, 3] = placeholder\n"
        "%y : float32[2, 3] = call_function prims.exp(a=%x)\n"
        "%output = output(values=[%y, %y, %x])");
    program.outputs[1].meta = TensorMeta{DType::float32, {2, 3}, {1, 2}, 0};
    Algorithm algorithm = translate(program).algorithm;
    verify(algorithm);
    REQUIRE(algorithm.outputs.size() == 3);
    CHECK(algorithm.outputs[0].stage == "y");
    CHECK(algorithm.outputs[1].stage == "y_copy");
    CHECK(algorithm.outputs[1].meta.strides == std::vector<Extent>{1, 2});
    CHECK(algorithm.outputs[2].stage == "x_copy");
}

TEST_CASE("an index out of range is reported with its site") {
    Program program = tests::program_from(
        "%table : float32[5, 2] = placeholder\n%i : int64[2] = placeholder\n"
        "%y : float32[2, 2] = call_function tw.gather_nd(a=%table, indices=[%i, none], wrap=false)\n"
        "%output = output(values=[%y])");
    program.inputs[0].qualified_name = "embedding.weight";
    Translated translated = translate(program);
    auto result = tests::evaluate(translated.algorithm, {{"table", tests::tensor(DType::float32, {5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})},
                                                         {"i", tests::tensor(DType::int64, {2}, {2, -2})}});
    REQUIRE(result.index_error);
    CHECK(result.index_error->index == -2);
    CHECK(result.index_error->size == 5);
    CHECK(translated.index_sites.at(static_cast<std::size_t>(result.index_error->site)) ==
          "node y: index into dimension 0 of embedding.weight");
}

}  // namespace
