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
    Algorithm softmax = algorithm_of(
        "%x : float32[8, s0] = placeholder\n"
        "%m : float32[8] = call_function prims.amax(a=%x, dims=[1])\n"
        "%mb : float32[8, s0] = call_function prims.broadcast_in_dim(a=%m, size=[8, s0], dims=[0])\n"
        "%c : float32[8, s0] = call_function prims.sub(a=%x, b=%mb)\n"
        "%e : float32[8, s0] = call_function prims.exp(a=%c)\n"
        "%s : float32[8] = call_function prims.sum(a=%e, dims=[1])\n"
        "%sb : float32[8, s0] = call_function prims.broadcast_in_dim(a=%s, size=[8, s0], dims=[0])\n"
        "%y : float32[8, s0] = call_function prims.div(a=%e, b=%sb)\n"
        "%output = output(values=[%y])");
    CHECK(print(softmax) ==
          "symbol s0 in [2, 4096]\n"
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

TEST_CASE("moments are sums about a rough mean") {
    Algorithm moments = algorithm_of(
        "%x : float32[8, 16] = placeholder\n"
        "%v : (float32[8], float32[8]) = call_function prims.var_mean(a=%x, dims=[1], correction=0)\n"
        "%v0 : float32[8] = call_function getitem(tuple=%v, index=0)\n"
        "%v1 : float32[8] = call_function getitem(tuple=%v, index=1)\n"
        "%output = output(values=[%v0, %v1])");
    for (const char *stage : {"v_sum", "v_rest", "v_squares"}) {
        CHECK(form_of(moments, stage) == Form::reduction);
        CHECK(match_fold(moments.find_stage(stage)->func)->combiner == Combiner::sum);
    }
    CHECK(moments.stages.size() == 5);
}

TEST_CASE("every combiner is recognised in the fold that it defines") {
    using enum Combiner;
    for (Combiner combiner : {sum, product, minimum, maximum, logical_and, logical_or, arg_minimum, arg_maximum, welford, log_sum_exp}) {
        CAPTURE(name(combiner));
        const Halide::Type f = Halide::Float(32), i = Halide::Int(64), b = Halide::Bool();
        std::vector<Halide::Type> types = combiner == arg_minimum || combiner == arg_maximum  ? std::vector<Halide::Type>{f, i}
                                          : combiner == welford                               ? std::vector<Halide::Type>{f, f, f}
                                          : combiner == log_sum_exp                           ? std::vector<Halide::Type>{f, f}
                                          : combiner == logical_and || combiner == logical_or ? std::vector<Halide::Type>{b}
                                                                                              : std::vector<Halide::Type>{f};
        std::vector<Halide::Expr> terms;
        Halide::RDom domain = reduction_domain({10});
        for (std::size_t k = 0; k < types.size(); k++) {
            Halide::ImageParam input(types[k], 2, "x" + std::to_string(k));
            terms.push_back(read(input, {argument_vars(1)[0], domain[0]}));
        }
        Halide::Func fold = named_func("fold"), scan = named_func("scan");
        define_reduction(fold, argument_vars(1), combiner, terms, domain);
        auto matched = match_fold(fold);
        REQUIRE(matched);
        CHECK(matched->combiner == combiner);
        CHECK(matched->terms.size() == terms.size());
        CHECK(Halide::Internal::graph_equal(matched->terms[0], terms[0]));

        std::vector<Halide::Expr> scanned;
        for (std::size_t k = 0; k < types.size(); k++) {
            Halide::ImageParam input(types[k], 2, "x" + std::to_string(k));
            scanned.push_back(read(input, {argument_vars(2)[0], argument_vars(2)[1]}));
        }
        define_scan(scan, argument_vars(2), 1, 10, combiner, scanned);
        REQUIRE(match_fold(scan));
        CHECK(match_fold(scan)->combiner == combiner);
        CHECK(match_fold(scan)->scan_axis == 1);
    }
}

TEST_CASE("products, windows, scans, gathers, scatters and sorts") {
    Algorithm dot = algorithm_of(
        "%a : bfloat16[2, 3, 4] = placeholder\n%b : bfloat16[2, 5, 4] = placeholder\n"
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
        "out_dtype=torch.float32)\n"
        "%cumsum : float32[1, 4, 6] = call_function prims.cumsum(a=%x, dim=2)\n"
        "%rows : float32[6, 4, 6] = call_function tw.gather_nd(a=%x, indices=[%i, none, none], wrap=true)\n"
        "%put : float32[1, 4, 6] = call_function tw.scatter(a=%x, dim=1, index=%j, src=%s, reduce=\"add\")\n"
        "%sort : (float32[1, 4, 6], int64[1, 4, 6]) = call_function tw.sort(a=%x, dim=1, descending=false, count=4)\n"
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

TEST_CASE("an index that is a formula inside its range is an affine place, any other is checked") {
    const char *lines =
        "%%x : bool[2, s0] = placeholder\n"
        "%%i : int64[s0] = call_function prims.iota(size=s0, start=%d, step=1, dtype=torch.int64)\n"
        "%%y : bool[2, s0] = call_function tw.gather_nd(a=%%x, indices=[none, %%i], wrap=true)\n"
        "%%output = output(values=[%%y])";
    char inside[400], outside[400];
    std::snprintf(inside, sizeof inside, lines, 0);
    std::snprintf(outside, sizeof outside, lines, 1);
    CHECK(print(*algorithm_of(inside).find_stage("y")) == "y[d0: 2, d1: s0] bool = x(d0, d1)\n");
    CHECK(form_of(algorithm_of(outside), "y") == Form::gather);
    Algorithm put = algorithm_of(
        "%x : float32[8] = placeholder\n%v : float32[4] = placeholder\n"
        "%i : int64[4] = call_function prims.iota(size=4, start=0, step=2, dtype=torch.int64)\n"
        "%y : float32[8] = call_function tw.index_put(a=%x, indices=[%i], values=%v, accumulate=false, wrap=true)\n"
        "%output = output(values=[%y])");
    CHECK(form_of(put, "y") == Form::scatter);
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
