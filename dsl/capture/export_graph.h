// The op graph of torch.export's serialised form.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <unordered_map>

#include "dsl/capture/export_types.h"

namespace tilewright {

/// Adds the instructions of one serialised graph to an op graph. Values are known by their serialised names.
class GraphReader {
public:
    GraphReader(Graph &graph, SizeReader &sizes, const boost::json::object &serialised);

    /// Declares a tensor or integer that comes from outside, as a placeholder of the op graph.
    Node *add_placeholder(const std::string &name);
    /// Declares a value that an enclosing graph computed.
    void bind(const std::string &name, const Argument &value);
    void read_nodes();
    Argument argument(const boost::json::value &value);
    Argument value(std::string_view name) const;

    /// Instructions whose results have sizes that depend on data: "node nonzero (aten.nonzero.default)".
    const std::vector<std::string> &data_dependent() const { return data_dependent_; }

private:
    void read_node(const boost::json::object &node, const std::string &name);
    bool computes_sizes_only(const boost::json::object &node) const;
    bool inline_region(const boost::json::object &node, std::string_view target);
    void add_results(Node *node, const boost::json::object &serialised);
    TensorMeta meta_of(std::string_view name);
    void define(std::string_view name, Argument value);
    void note_data_dependence(const Node &node);
    void refuse_numbers_from_data();

    Graph &graph_;
    SizeReader &sizes_;
    const boost::json::object &serialised_;
    const boost::json::object &tensor_values_;
    std::unordered_map<std::string, Argument> values_;
    std::vector<std::string> data_dependent_;
    std::vector<std::string> asserted_;  ///< the same of numbers read from tensors, as long as nothing but assertions uses them
    int depth_ = 0;
};

}  // namespace tilewright
