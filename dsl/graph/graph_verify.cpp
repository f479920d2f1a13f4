#include <unordered_set>

#include "dsl/error.h"
#include "dsl/graph/graph.h"

namespace tilewright {
namespace {

void verify_tensor(const Node &node, const TensorMeta &meta) {
    internal_assert(meta.strides.size() == meta.sizes.size(), "node {}: {} strides for {} sizes", node.name, meta.strides.size(),
                    meta.sizes.size());
    for (const Extent &size : meta.sizes) {
        internal_assert(size.constant().value_or(0) >= 0, "node {}: the negative size {}", node.name, size.to_string());
    }
}

void verify_meta(const Node &node) {
    if (const auto *tensor = std::get_if<TensorMeta>(&node.meta)) {
        verify_tensor(node, *tensor);
    } else if (const auto *results = std::get_if<std::vector<std::optional<TensorMeta>>>(&node.meta)) {
        for (const auto &result : *results) {
            if (result) {
                verify_tensor(node, *result);
            }
        }
    }
}

void verify_getitem(const Node &node) {
    const Argument *tuple = node.find("tuple"), *index = node.find("index");
    internal_assert(tuple != nullptr && tuple->node() != nullptr && index != nullptr && index->get_if<Extent>() != nullptr,
                    "node {}: getitem takes a node and an index", node.name);
    const auto *results = std::get_if<std::vector<std::optional<TensorMeta>>>(&tuple->node()->meta);
    const std::int64_t position = index->get_if<Extent>()->value();
    internal_assert(results != nullptr && position >= 0 && position < static_cast<std::int64_t>(results->size()),
                    "node {}: {} has no result {}", node.name, tuple->node()->name, position);
    const auto &expected = (*results)[static_cast<std::size_t>(position)];
    const auto *tensor = std::get_if<TensorMeta>(&node.meta);
    internal_assert(!expected || (tensor != nullptr && *tensor == *expected), "node {}: its metadata differs from result {} of {}",
                    node.name, position, tuple->node()->name);
}

}  // namespace

void verify(const Graph &graph) {
    std::unordered_set<const Node *> seen;
    std::unordered_set<std::string> names;
    internal_assert(!graph.nodes().empty() && graph.nodes().back().get() == graph.output_node(), "the output does not come last");
    graph.output_values();
    for (const auto &owned : graph.nodes()) {
        const Node &node = *owned;
        internal_assert(!node.name.empty() && names.insert(node.name).second, "the name {} is given twice", node.name);
        internal_assert(graph.find(node.name) == &node, "node {} was renamed behind the graph's back", node.name);
        for (Node *input : node.inputs()) {
            internal_assert(input != nullptr, "node {} ({}) reads nothing through an argument", node.name, node.target);
            internal_assert(seen.contains(input), "node {} ({}) reads a node that does not come before it", node.name, node.target);
            internal_assert(graph.is_reader(&node, input), "node {} reads {} behind the graph's back", node.name, input->name);
        }
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                internal_assert(node.arguments[i].name != node.arguments[j].name, "node {} has two arguments {}", node.name,
                                node.arguments[i].name);
            }
        }
        verify_meta(node);
        if (node.opcode == Opcode::call_function && node.target == "getitem") {
            verify_getitem(node);
        }
        seen.insert(&node);
    }
}

}  // namespace tilewright
