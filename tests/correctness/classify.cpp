// The form of each stage, and what it reads, as the lowering sees them.
#include <doctest/doctest.h>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {

Algorithm algorithm_of(const char *lines) {
    Algorithm algorithm = translate(tests::program_from(lines)).algorithm;
    verify(algorithm);
    return algorithm;
}

Form form_of(const Algorithm &algorithm, const char *stage) {
    const Stage *found = algorithm.find_stage(stage);
    REQUIRE(found != nullptr);
    return classify(*found);
}

TEST_CASE("softmax") {
    Algorithm softmax = algorithm_of("%x : float32[8, s0] = placeholder\n"
                                     "%m : float32[8] = call_function prims.amax(a=%x, dims=[1])\n"
                                     "%mb : float32[8, s0] = call_function prims.broadcast_in_dim(a=%m, size=[8, s0], dims=[0])\n"
                                     "%c : float32[8, s0] = call_function prims.sub(a=%x, b=%mb)\n"
                                     "%e : float32[8, s0] = call_function prims.exp(a=%c)\n"
                                     "%s : float32[8] = call_function prims.sum(a=%e, dims=[1])\n"
                                     "%sb : float32[8, s0] = call_function prims.broadcast_in_dim(a=%s, size=[8, s0], dims=[0])\n"
                                     "%y : float32[8, s0] = call_function prims.div(a=%e, b=%sb)\n"
                                     "%output = output(values=[%y])");
    CHECK(print(softmax) == "symbol s0 in [2, 4096]\n"
                            "input x float32[8, s0]\n"
                            "m[d0: 8] float32 = maximum over r0: s0 of x(d0, r0)\n"
                            "c[d0: 8, d1: s0] float32 = x(d0, d1) - m(d0)\n"
                            "e[d0: 8, d1: s0] float32 = exp(c(d0, d1))\n"
                            "s[d0: 8] float32 = sum over r0: s0 of e(d0, r0)\n"
                            "y[d0: 8, d1: s0] float32 = e(d0, d1) / s(d0)\n"
                            "output out0 float32[8, s0] = y\n");
    CHECK(form_of(softmax, "m") == Form::reduction);
    CHECK(form_of(softmax, "e") == Form::pointwise);
    std::vector<Read> reads = reads_of(*softmax.find_stage("c"));
    REQUIRE(reads.size() == 2);
    CHECK(reads[0].producer == "x");
    CHECK(reads[0].from_input);
    CHECK(reads[1].producer == "m");
    CHECK(reads[1].indices.size() == 1);
}

TEST_CASE("layer norm's moments are one fold") {
    Algorithm moments = algorithm_of("%x : float32[8, 16] = placeholder\n"
                                     "%v : (float32[8], float32[8]) = call_function prims.var_mean(a=%x, dims=[1], correction=0)\n"
                                     "%v0 : float32[8] = call_function getitem(tuple=%v, index=0)\n"
                                     "%v1 : float32[8] = call_function getitem(tuple=%v, index=1)\n"
                                     "%output = output(values=[%v0, %v1])");
    CHECK(form_of(moments, "v") == Form::reduction);
    CHECK(match_fold(moments.find_stage("v")->func)->combiner == Combiner::welford);
    CHECK(moments.stages.size() == 2);
}

TEST_CASE("products, windows, scans, gathers, scatters and sorts") {
    Algorithm dot = algorithm_of("%a : bfloat16[2, 3, 4] = placeholder\n%b : bfloat16[2, 5, 4] = placeholder\n"
                                 "%t : bfloat16[2, 4, 5] = call_function prims.permute(a=%b, dims=[0, 2, 1])\n"
                                 "%y : bfloat16[2, 3, 5] = call_function tw.dot(a=%a, b=%t, out_dtype=torch.bfloat16)\n"
                                 "%output = output(values=[%y])");
    CHECK(form_of(dot, "y_sums") == Form::contraction);
    CHECK(form_of(dot, "y") == Form::pointwise);
    CHECK(dot.stages.size() == 2);

    Algorithm others = algorithm_of(
        "%x : float32[1, 4, 6] = placeholder\n%w : float32[4, 4, 3] = placeholder\n%i : int64[6] = placeholder\n"
        "%j : int64[1, 2, 6] = placeholder\n%s : float32[1, 2, 6] = placeholder\n"
        "%conv : float32[1, 4, 6] = call_function tw.convolution(input=%x, weight=%w, stride=[1], padding=[1], dilation=[1], groups=1, "
        "transposed=false, output_padding=[0], out_dtype=torch.float32)\n"
        "%cumsum : float32[1, 4, 6] = call_function prims.cumsum(a=%x, dim=2)\n"
        "%rows : float32[6, 4, 6] = call_function tw.gather_nd(a=%x, indices=[%i, none, none], wrap=true)\n"
        "%put : float32[1, 4, 6] = call_function tw.scatter(a=%x, dim=1, index=%j, src=%s, reduce=\"add\")\n"
        "%sort : (float32[1, 4, 6], int64[1, 4, 6]) = call_function tw.sort(a=%x, dim=1, descending=false)\n"
        "%sorted : float32[1, 4, 6] = call_function getitem(tuple=%sort, index=0)\n"
        "%output = output(values=[%conv, %cumsum, %rows, %put, %sorted])");
    CHECK(form_of(others, "conv") == Form::window);
    CHECK(form_of(others, "cumsum") == Form::scan);
    CHECK(match_fold(others.find_stage("cumsum")->func)->scan_axis == 2);
    CHECK(form_of(others, "rows") == Form::gather);
    CHECK(form_of(others, "put") == Form::scatter);
    CHECK(match_scatter(others.find_stage("put")->func)->combiner == Combiner::sum);
    CHECK(form_of(others, "sort") == Form::sort);
}

TEST_CASE("a hand-written fold is recognised, one that nests itself is not taken for a scan") {
    Halide::Var x("x");
    Halide::Func producer = named_func("producer"), total = named_func("total");
    producer(x) = x;
    Halide::RDom r(0, 10);
    total(x) += producer(r.x);
    CHECK(match_fold(total)->combiner == Combiner::sum);
    CHECK(match_fold(total)->terms.size() == 1);
}

TEST_CASE("affine indices") {
    Halide::Var a("a"), b("b");
    auto affine = as_affine(a * 4 + b - a + 3, {"a", "b"});
    REQUIRE(affine);
    CHECK(affine->terms == std::vector<std::pair<std::string, std::int64_t>>{{"a", 3}, {"b", 1}});
    CHECK(Halide::Internal::is_const(affine->constant, 3));
    CHECK(!as_affine(a * b, {"a", "b"}));
    CHECK(!as_affine(a / 2, {"a", "b"}));
}

}  // namespace
