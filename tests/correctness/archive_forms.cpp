// The less common forms of torch.export's archives.
#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"

using namespace tilewright;

namespace {

const InputSpec &input(const Program &program, const std::string &placeholder) {
    for (const InputSpec &spec : program.inputs) {
        if (spec.placeholder == placeholder) {
            return spec;
        }
    }
    throw std::logic_error("no input " + placeholder);
}

std::string output_text(const Program &program) { return print(Argument(program.graph.output_values())); }

}  // namespace

TEST_CASE("every kind of input and output") {
    Program program = read_archive("tests/data/archives/kinds.pt2");
    CHECK(input(program, "p_empty").kind == InputKind::parameter);
    CHECK(input(program, "p_empty").value->meta.to_string() == "float32[0, 3]");
    CHECK(input(program, "b_saved").kind == InputKind::buffer);
    float values[3];
    std::memcpy(values, input(program, "b_unsaved").value->data(), sizeof values);
    CHECK(values[2] == 2.0F);
    CHECK(input(program, "c_constant").kind == InputKind::constant);
    CHECK(input(program, "x").kind == InputKind::user_input);
    CHECK(print(*input(program, "number").constant) == "2");
    CHECK(print(*input(program, "text").constant) == "\"label\"");
    CHECK(output_text(program) == "[%add_1, none, 3, 2.5, true, \"label\", %where, %p_empty]");
    CHECK(print(*program.graph.find("where")) ==
          "%where : float32[3] = call_function aten.where.ScalarSelf(condition=%gt, self=-inf, other=%x)");
    // Regions without gradients or autocasting are part of the graph.
    CHECK(print(*program.graph.find("add")) == "%add : float32[3] = call_function aten.add.Tensor(self=%mul, other=%b_saved)");
    functionalize(program);
    CHECK(output_text(program) == "[%add_1, %where, %p_empty]");
    CHECK(program.outputs.size() == 3);
}

TEST_CASE("sizes as inputs, outputs and expressions") {
    const Program program = read_archive("tests/data/archives/sizes.pt2");
    const TensorMeta &x = program.graph.find("x")->tensor();
    const Extent rows = x.sizes[0], columns = x.sizes[1];
    CHECK(program.symbols.at(rows.to_string()) == SymbolRange{2, 64});
    CHECK(program.symbols.size() == 3);
    // The stride that PyTorch writes as Max(1, size) is the size, which is never 0 here.
    CHECK(program.graph.find("pad")->tensor().is_contiguous());
    CHECK(program.graph.find("pad")->tensor().sizes[1] == columns - mod(columns, 16) + 16);
    const Extent n = std::get<Extent>(program.graph.find("n")->meta);
    CHECK(program.graph.find("mul")->tensor().sizes[0] == n);
    CHECK(*program.graph.find("mul")->find("other")->get_if<Extent>() == n);
    CHECK(*program.graph.output_values()[3].get_if<Extent>() == rows + 1);
}

TEST_CASE("weights that share memory") {
    const Program program = read_archive("tests/data/archives/shared.pt2");
    CHECK(input(program, "p_embedding_weight").value->data() == input(program, "p_head_weight").value->data());
    const HostTensor &front = *input(program, "b_front").value, &back = *input(program, "b_back").value;
    CHECK(back.data() - front.data() == 3 * 4);
    float first = 0;
    std::memcpy(&first, back.data(), 4);
    CHECK(first == 5.0F);
    CHECK(input(program, "b_turned").value->meta.to_string() == "float32[4, 2] strides=[1, 4]");
    CHECK(input(program, "b_repeated").value->meta.to_string() == "float32[3, 4] strides=[0, 1]");
}

TEST_CASE("results that nobody reads leave no instruction") {
    const Program program = read_archive("tests/data/archives/results.pt2");
    CHECK(output_text(program) == "[%getitem, %getitem_3, %getitem_6, %getitem_8]");
    int getitems = 0;
    for (const auto &node : program.graph.nodes()) {
        getitems += node->target == "getitem";
    }
    CHECK(getitems == 4);
}

TEST_CASE("numbers read from tensors that only assertions use are left out with these") {
    const Program program = read_archive("tests/data/archives/asserted.pt2");
    CHECK(output_text(program) == "[%mul_1]");
    CHECK(std::none_of(program.graph.nodes().begin(), program.graph.nodes().end(),
                       [](const auto &node) { return node->target == "aten.item.default"; }));
}

TEST_CASE("all that depends on data is refused at once") {
    CHECK_THROWS_WITH_AS(
        read_archive("tests/data/archives/data_dependent.pt2"),
        doctest::Contains("node nonzero (aten.nonzero.default), node index (aten.index.Tensor), node item (aten.item.default)"), UserError);
}
