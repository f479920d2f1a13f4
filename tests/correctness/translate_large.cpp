// Work over a graph of n nodes stays near n, and a deep graph does not exhaust the stack.
#include <chrono>
#include <doctest/doctest.h>

#include "dsl/algorithm/hash.h"
#include "dsl/error.h"
#include "lowering/translate/translate.h"

using namespace tilewright;

namespace {

Program chain(int length) {
    Program program;
    program.name = "chain.pt2";
    Graph &graph = program.graph;
    TensorMeta meta = TensorMeta::contiguous(DType::float32, {4, 8});
    Node *x = graph.placeholder("x", meta), *last = x;
    program.inputs.push_back({InputKind::user_input, "x", "", {}, {}});
    for (int i = 0; i < length; i++) {
        last = graph.call("prims.add", {{"a", last}, {"b", i % 2 ? last : x}}, meta);
    }
    graph.output({last});
    program.outputs.resize(1);
    return program;
}

double seconds_for(int length) {
    const auto start = std::chrono::steady_clock::now();
    {
        Translated translated = translate(chain(length));
        verify(translated.algorithm);
        structural_hash(translated.algorithm);
        CHECK(translated.algorithm.stages.size() == static_cast<std::size_t>(length));
        CHECK(print(translated.algorithm).size() > static_cast<std::size_t>(length) * 10);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_CASE("a chain of 20,000 operators") {
    const double small = seconds_for(1000), large = seconds_for(20000);
    CHECK(large < 60 * small + 5);
}

}  // namespace
