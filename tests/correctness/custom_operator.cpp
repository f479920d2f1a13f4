// A custom operator is translated through the public interface.
#include <doctest/doctest.h>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/context.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;

TEST_CASE("pointwise and reduction of one's own") {
    register_translation("mylib.scaled_add.default", [](TranslationContext &context, const Node &node) {
        TensorValue a = context.operand(node, "a"), b = context.operand(node, "b");
        auto scale = static_cast<float>(TranslationContext::number(node, "scale"));
        context.define_pointwise(node, [&](const Indices &at) { return math::add(a(at), math::mul(b(at), Halide::Expr(scale))); });
    });
    register_translation("mylib.row_square_sum.default", [](TranslationContext &context, const Node &node) {
        TensorValue a = context.operand(node, "a");
        Halide::Func sum =
            context.add_reduction(node, "", {a.size(0)}, Combiner::sum, {a.size(1)}, [&](const Indices &d, const Indices &r) {
                return std::vector<Halide::Expr>{math::mul(a({d[0], r[0]}), a({d[0], r[0]}))};
            });
        context.define_results(node, {call(sum, TranslationContext::indices(node))});
    });
    Program program = tests::program_from(
        "%a : float32[2, 2] = placeholder\n%b : float32[2, 2] = placeholder\n"
        "%c : float32[2, 2] = call_function mylib.scaled_add.default(a=%a, b=%b, scale=0.5)\n"
        "%s : float32[2] = call_function mylib.row_square_sum.default(a=%c)\n"
        "%output = output(values=[%s])");
    Translated translated = translate(program);
    verify(translated.algorithm);
    auto result = tests::evaluate(translated.algorithm, {{"a", tests::tensor(DType::float32, {2, 2}, {1, 2, 3, 4})},
                                                         {"b", tests::tensor(DType::float32, {2, 2}, {2, 0, -2, 4})}});
    CHECK(tests::values_of(result.outputs.at("out0")) == std::vector<double>{8, 40});
}

TEST_CASE("among ATen operators, a custom one passes decomposition as it is") {
    register_translation("mylib.twice.default", [](TranslationContext &context, const Node &node) {
        TensorValue x = context.operand(node, "x");
        context.define_pointwise(node, [&](const Indices &at) { return math::add(x(at), x(at)); });
    });
    Program program = tests::program_from(
        "%a : float32[2] = placeholder\n"
        "%b : float32[2] = call_function aten.relu.default(self=%a)\n"
        "%c : float32[2] = call_function mylib.twice.default(x=%b)\n"
        "%d : float32[2] = call_function aten.neg.default(self=%c)\n"
        "%output = output(values=[%d])");
    functionalize(program);
    decompose(program);
    auto result = tests::evaluate(translate(program).algorithm, {{"a", tests::tensor(DType::float32, {2}, {-1, 3})}});
    CHECK(tests::values_of(result.outputs.at("out0")) == std::vector<double>{-0.0, -6});
}
