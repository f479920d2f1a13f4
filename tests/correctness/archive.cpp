#include <boost/crc.hpp>
#include <doctest/doctest.h>
#include <fstream>

#include "dsl/capture/archive.h"
#include "dsl/graph/graph.h"

using namespace tilewright;

namespace {

/// The bytes of a tensor's elements, row by row.
void add_elements(const HostTensor &tensor, boost::crc_32_type &crc) {
    const TensorMeta &meta = tensor.meta;
    const int bytes = size_in_bytes(meta.dtype);
    std::vector<std::int64_t> index(meta.sizes.size());
    for (std::int64_t i = 0; i < meta.elements().value(); ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
            at += index[d] * meta.strides[d].value();
        }
        crc.process_bytes(tensor.data() + at * bytes, static_cast<std::size_t>(bytes));
        for (std::size_t d = index.size(); d-- > 0 && ++index[d] == meta.sizes[d].value();) {
            index[d] = 0;
        }
    }
}

}  // namespace

TEST_CASE("every shipped archive has the operators and weights that PyTorch finds in it") {
    std::ifstream facts("tests/data/archive_facts.txt");
    std::string file;
    int operators = 0, weights = 0, inputs = 0, outputs = 0, archives = 0;
    unsigned crc = 0;
    while (facts >> file >> operators >> weights >> inputs >> outputs >> crc) {
        CAPTURE(file);
        const Program program = read_archive("apps/models/" + file);
        ++archives;
        CHECK(program.name == file);
        int found_operators = 0, found_weights = 0, found_inputs = 0;
        for (const auto &node : program.graph.nodes()) {
            found_operators += node->opcode == Opcode::call_function && node->target != "getitem";
        }
        boost::crc_32_type sum;
        for (const InputSpec &input : program.inputs) {
            found_inputs += input.kind == InputKind::user_input;
            if (input.value) {
                ++found_weights;
                add_elements(*input.value, sum);
                CHECK(program.graph.find(input.placeholder)->tensor() == input.value->meta);
                CHECK(!input.qualified_name.empty());
            }
        }
        CHECK(found_operators == operators);
        CHECK(found_weights == weights);
        CHECK(found_inputs == inputs);
        CHECK(program.outputs.size() == static_cast<std::size_t>(outputs));
        CHECK(program.graph.output_values().size() == program.outputs.size());
        CHECK(sum.checksum() == crc);
        const std::string text = print(program.graph);
        CHECK(print(parse_graph(text)) == text);
    }
    CHECK(archives == 11);
}

TEST_CASE("symbolic sizes stand in arguments and metadata, with their ranges") {
    const Program program = read_archive("apps/models/gpt2_dynamic.pt2");
    CHECK(program.symbols.at("s58") == SymbolRange{1, 64});
    CHECK(program.symbols.at("s48") == SymbolRange{2, 64});
    const Node *view = program.graph.find("view");
    CHECK(print(*view->find("size")) == "[-1, s48]");
    CHECK(program.graph.find("i")->tensor().to_string() == "int64[s58, s48]");
    CHECK(program.graph.find("linear")->tensor().to_string() == "float32[s58, s48, 211]");
    CHECK(view->module_path == "m.transformer");
    for (const auto &node : program.graph.nodes()) {
        CHECK(node->target.find("sym_size") == std::string::npos);
    }
}

TEST_CASE("operators with several results are read through getitem") {
    const Program program = read_archive("apps/models/special.pt2");
    const Node *sort = program.graph.find("sort");
    const Node *values = program.graph.find("getitem");
    CHECK(sort->target == "aten.sort.default");
    CHECK(values->target == "getitem");
    CHECK(values->input("tuple") == sort);
    CHECK(values->tensor().to_string() == "float32[6, 8]");
}
