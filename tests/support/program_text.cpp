#include "tests/support/program_text.h"

#include "dsl/error.h"

namespace tilewright::tests {
namespace {

void collect(const TensorMeta &meta, std::set<std::string> &symbols) {
    for (const auto *list : {&meta.sizes, &meta.strides}) {
        for (const Extent &extent : *list) {
            extent.collect_symbols(symbols);
        }
    }
}

}  // namespace

Program program_from(std::string_view lines, const SymbolRanges &symbols) {
    Program program;
    program.name = "test.pt2";
    program.graph = parse_graph("graph {\n" + std::string(lines) + "\n}\n", "test graph");
    std::set<std::string> used;
    for (const auto &node : program.graph.nodes()) {
        if (node->opcode == Opcode::placeholder) {
            InputSpec spec;
            spec.placeholder = node->name;
            program.inputs.push_back(spec);
            if (const auto *meta = std::get_if<TensorMeta>(&node->meta)) {
                collect(*meta, used);
            }
        }
    }
    for (const std::string &symbol : used) {
        program.symbols[symbol] = {2, 4096};
    }
    for (const auto &[symbol, range] : symbols) {
        program.symbols[symbol] = range;
    }
    program.outputs.resize(program.graph.output_values().size());
    return program;
}

void bind_weight(Program &program, const std::string &placeholder, InputKind kind, HostTensor value) {
    for (InputSpec &spec : program.inputs) {
        if (spec.placeholder == placeholder) {
            spec.kind = kind;
            spec.qualified_name = placeholder;
            spec.value = std::move(value);
            return;
        }
    }
    internal_error("the program has no placeholder {}", placeholder);
}

}  // namespace tilewright::tests
