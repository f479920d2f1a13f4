// An operator of one's own is decomposed through the public interface: here the product by groups of rows that mixture-of-experts models
// use.
#include <doctest/doctest.h>

#include "lowering/decompose/builder.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;

namespace {

/// Row r of the input is multiplied by the weight of the first group whose end lies beyond r.
std::vector<Node *> grouped_product(Builder &b, const Node &node) {
    Node *input = node.input("input");    // [rows, inner]
    Node *weight = node.input("weight");  // [groups, inner, columns]
    Node *ends = node.input("offs");      // [groups]
    const Extent groups = sizes_of(weight)[0], rows = sizes_of(input)[0];
    Node *row = b.unsqueeze(b.iota(rows), 0);
    Node *end = b.unsqueeze(b.convert(ends, DType::int64), 1);
    Node *group = b.sum(b.convert(b.ge(row, end), DType::int64), {0});  // how many groups end at or before the row
    Node *chosen = b.eq(b.unsqueeze(b.iota(groups), 1), group);         // [groups, rows]
    Node *all = b.dot(b.broadcast(input, {groups, rows, sizes_of(input)[1]}), weight, dtype_of(input));
    return {b.sum(b.where(b.unsqueeze(chosen, 2), all, 0.0), {0})};
}

}  // namespace

TEST_CASE("transformers.grouped_mm_fallback") {
    const std::string lines =
        "%x : float32[3, 2] = placeholder\n%w : float32[2, 2, 1] = placeholder\n%e : int32[2] = placeholder\n"
        "%y : float32[3, 1] = call_function transformers.grouped_mm_fallback.default(input=%x, weight=%w, offs=%e)\n"
        "%output = output(values=[%y])";
    register_decomposition("transformers.grouped_mm_fallback.default", grouped_product);
    Program program = tests::program_from(lines);
    decompose(program);
    const Translated translated = translate(program);
    auto result = tests::evaluate(translated.algorithm, {{"x", tests::tensor(DType::float32, {3, 2}, {1, 2, 3, 4, 5, 6})},
                                                         {"w", tests::tensor(DType::float32, {2, 2, 1}, {1, 10, 100, 1000})},
                                                         {"e", tests::tensor(DType::int32, {2}, {1, 3})}});
    CHECK(tests::values_of(result.outputs.at("out0")) == std::vector<double>{21, 4300, 6500});
}
