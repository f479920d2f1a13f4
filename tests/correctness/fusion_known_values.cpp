#include <doctest/doctest.h>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"
#include "lowering/fusion/fusion.h"
#include "lowering/fusion/known_values.h"

using namespace tilewright;
using Halide::Expr;

namespace {

Stage stage(const std::string &name, const std::vector<Extent> &extents,
            const std::function<Expr(const std::vector<Halide::Var> &)> &value) {
    Stage result;
    result.func = named_func(name);
    result.extents = extents;
    const std::vector<Halide::Var> at = argument_vars(static_cast<int>(extents.size()));
    result.func(at) = value(at);
    return result;
}

Expr wide(const Expr &e) { return math::convert(Halide::Int(64), e); }

/// Sequences begin where positions do not follow one another: nowhere, here.
Algorithm packed_mask(std::int64_t step) {
    Algorithm a;
    a.stages.push_back(stage("begins", {4, 64}, [&](const auto &d) {
        const Expr before = Halide::select(d[1] < 1, math::sub(wide(0), wide(static_cast<int>(step))),
                                           math::mul(wide(Halide::max(d[1], 1) - 1), wide(static_cast<int>(step))));
        return math::sub(math::mul(wide(d[1]), wide(static_cast<int>(step))), before) != Halide::Internal::make_const(Halide::Int(64), 1);
    }));
    Stage number;
    number.func = named_func("number");
    number.extents = {4, 64};
    number.reduction_extents = {64};
    const std::vector<Halide::Var> at = argument_vars(2);
    const Halide::Func begins = a.stages[0].func;
    define_scan(number.func, at, 1, 64, Combiner::sum, {wide(begins(at[0], at[1]))});
    a.stages.push_back(number);
    const Halide::Func numbers = number.func;
    a.stages.push_back(
        stage("mask", {4, 64, 64}, [&](const auto &d) { return wide(d[2]) <= wide(d[1]) && numbers(d[0], d[1]) == numbers(d[0], d[2]); }));
    a.outputs.push_back({"out", "mask", 0, TensorMeta::contiguous(DType::boolean, {4, 64, 64})});
    return a;
}

}  // namespace

TEST_CASE("what is the same at every place is a constant: of a mask of sequences the order stays") {
    const Algorithm folded = fold_known_values(packed_mask(1));
    CHECK(print(folded.stages[2]).find("int64(d2) <= int64(d1)\n") != std::string::npos);
    const Partition kernels = partition(packed_mask(1), {});
    CHECK(kernels.calls.size() == 1);
}

TEST_CASE("what differs from place to place stays") {
    const Algorithm folded = fold_known_values(packed_mask(2));
    CHECK(print(folded.stages[2]).find("number") != std::string::npos);
    CHECK(partition(packed_mask(2), {}).calls.size() == 2);
}
