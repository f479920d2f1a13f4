#include <chrono>
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "dsl/graph/graph.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {
const char *const everything = R"(graph {
  %x : float32[2, s0] = placeholder
  %y : bfloat16[s0//2, 4] strides=[1, s0//2] offset=3 = placeholder input.1
  %w : float32[4] = get_attr "layer 0.w"
  %n : int(s0 + 1) = call_function "sym size"()
  %t : (float32[2], none, int64[2] offset=s0) = call_function aten.topk.default(self=%x, k=2, flags=[true, false, none])
  %i : float32[2] = call_function getitem(tuple=%t, index=0) @ encoder.layer.0
  %c = call_method view(self=%y, size=[s0, Max(s0, 4)], nested=[[1, 2], []])
  %m = call_module block.mlp(a=-1.5, b=inf, c=-inf, d=nan, e=1e-05, f=2.0, g=-9223372036854775808)
  %o = call_function aten._to_copy.default(dtype=torch.bfloat16, layout=layout.strided, device=device("cuda", 1), other=device("cpu"), memory_format=memory_format.channels_last, text="a \"b\" \\ \x0a")
  %output = output(values=[%i, [%c, %w], none, 3])
}
)";
}

TEST_CASE("print, parse, print is the identity") {
    const Graph graph = parse_graph(everything);
    verify(graph);
    CHECK(print(graph) == everything);
    CHECK(print(graph.clone()) == everything);
    CHECK(std::get<std::string>(graph.find("o")->find("text")->value) == "a \"b\" \\ \n");
}

TEST_CASE("replacing, erasing and dead code keep the index of readers") {
    Program program = tests::program_from(
        "%x : float32[2] = placeholder\n"
        "%a : float32[2] = call_function aten.relu.default(self=%x)\n"
        "%b : float32[2] = call_function aten.mul.Tensor(self=%a, other=%a)\n"
        "%dead : float32[2] = call_function aten.neg.default(self=%b)\n"
        "%output = output(values=[%b])");
    Graph &graph = program.graph;
    Node *a = graph.find("a"), *b = graph.find("b");
    CHECK(graph.users(a) == std::vector<Node *>{b});
    CHECK_THROWS_AS(graph.erase(a), InternalError);
    graph.set_insert_point(b);
    Node *c = graph.call("aten.exp.default", {{"self", a}}, a->meta);
    CHECK(c->name == "exp");
    graph.replace_all_uses(a, c);
    CHECK(c->input("self") == a);
    CHECK(b->inputs() == std::vector<Node *>{c, c});
    CHECK(graph.eliminate_dead_code() == 1);
    CHECK(graph.find("dead") == nullptr);
    CHECK(graph.unique_name("exp") == "exp_1");
    CHECK(graph.unique_name("a.b-c") == "a_b_c");
    verify(graph);
}

TEST_CASE("work over a long graph stays near its length") {
    const auto start = std::chrono::steady_clock::now();
    Graph graph;
    Node *x = graph.placeholder("x", TensorMeta::contiguous(DType::float32, {4}));
    Node *last = x;
    for (int i = 0; i < 100000; ++i) {
        last = graph.call("aten.add.Tensor", {{"self", last}, {"other", x}}, x->meta);
    }
    graph.output({x});
    verify(graph);
    CHECK(graph.users(x).size() == 100001);
    CHECK(graph.eliminate_dead_code() == 100000);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}
