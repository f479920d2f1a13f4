#include "lowering/fusion/stage_reader.h"

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool selects_by_index(const std::vector<Expr> &values) {
    struct Finder : hi::IRGraphVisitor {
        bool found = false;
        using hi::IRGraphVisitor::visit;
        void visit(const hi::Select *op) override {
            found |= !contains_read(op->condition);
            hi::IRGraphVisitor::visit(op);
        }
    } finder;
    for (const Expr &value : values) {
        value.accept(&finder);
    }
    return finder.found;
}

}  // namespace

std::vector<Expr> StageReader::simplified(std::vector<Expr> indices) const {
    for (Expr &index : indices) {
        index = simplest_index(index, axes, samples);
    }
    return indices;
}

StageReader reader_of(const StageGraph &graph, int index) {
    const StageNode &node = graph.node(index);
    StageReader reader;
    reader.node = index;
    const std::vector<Halide::Var> arguments = argument_vars(node.stage->rank());
    for (std::size_t i = 0; i < node.axes.size(); ++i) {
        reader.renamed[node.axes[i].name] = arguments[i];
        reader.axes.push_back({arguments[i].name(), node.axes[i].extent});
    }
    if (!node.variables.empty()) {
        std::vector<Expr> extents;
        for (const IndexAxis &variable : node.variables) {
            extents.push_back(to_halide(variable.extent));
        }
        reader.domain = reduction_domain(extents);
        for (std::size_t i = 0; i < node.variables.size(); ++i) {
            const Halide::RVar variable = reader.domain[static_cast<int>(i)];
            reader.renamed[node.variables[i].name] = variable;
            reader.domain_variables[variable.name()] = variable;
            reader.axes.push_back({variable.name(), node.variables[i].extent});
        }
    }
    reader.samples = SamplePoints(reader.axes, graph.algorithm().symbols);
    reader.is_guarded = node.form != Form::contraction && selects_by_index(terms_of(*node.stage));
    return reader;
}

ReadSource follow(const StageGraph &graph, const hi::Call *call, std::vector<Expr> indices, const StageReader &reader) {
    ReadSource source;
    source.indices = std::move(indices);
    std::string name = call->name;
    source.tuple_index = call->value_index;
    for (;;) {
        source.input = graph.find_input(name);
        source.node = source.input < 0 ? graph.find_stage(name) : -1;
        if (source.node < 0) {
            break;
        }
        const StageNode &node = graph.node(source.node);
        if (!node.is_map || !node.is_virtual) {
            break;
        }
        source.maps.push_back({source.node, source.indices});
        std::map<std::string, Expr> values;
        for (std::size_t i = 0; i < node.axes.size(); ++i) {
            values[node.axes[i].name] = source.indices[i];
        }
        const Expr value = terms_of(*node.stage)[0];
        const auto *next = value.as<hi::Call>();
        source.indices.clear();
        for (const Expr &index : next->args) {
            source.indices.push_back(bind_variables(index, values));
        }
        source.tuple_index = next->value_index;
        name = next->name;
    }
    source.indices = reader.simplified(std::move(source.indices));
    return source;
}

}  // namespace tilewright
