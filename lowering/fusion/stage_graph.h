// An algorithm's stages as grouping sees them: who reads whom and where, what a stage costs, and which stages are mere index maps.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/analysis.h"
#include "lowering/fusion/index_map.h"

namespace tilewright {

/// A read with its producer looked up. `producer` counts StageGraph::nodes; for a tensor input it is -1 and `input` counts the inputs.
struct ResolvedRead {
    int producer = -1;
    int input = -1;
    int tuple_index = 0;
    std::vector<Halide::Expr> indices;  ///< over the reader's arguments and reduction variables
};

struct StageNode {
    const Stage *stage = nullptr;
    Form form = Form::pointwise;
    std::vector<ResolvedRead> reads;
    std::vector<int> producers;        ///< nodes, each once, in order
    std::vector<int> readers;          ///< nodes, each once, in order
    std::vector<IndexAxis> axes;       ///< arguments
    std::vector<IndexAxis> variables;  ///< reduction variables
    bool is_output = false;
    bool is_live = false;       ///< an output depends on it
    bool is_map = false;        ///< one read and nothing else: an index map
    bool is_view = false;       ///< moves values: index maps, conversions, concatenations, pads, constants, ranges
    bool is_virtual = false;    ///< copied into each kernel that reads it instead of being stored: views and what is cheap to recompute
    bool is_expensive = false;  ///< calls a transcendental function or divides
    int cost = 0;               ///< arithmetic operations an element

    std::string name() const { return stage->name(); }
    bool has_update() const { return form != Form::pointwise && form != Form::gather; }
};

/// Where a stage's value lies in memory: a tensor's name, and its sizes and strides over the stage's arguments (offset from element 0).
struct StoredTensor {
    std::string name;
    TensorMeta meta;
};

/// An output of the algorithm, at the stage that writes it: through index maps that only rename the place of an element.
struct GraphOutput {
    int node = -1;
    int tuple_index = 0;
    StoredTensor tensor;
};

/// A read by a node of a value that is stored or computed somewhere: through all virtual stages between, with the composed index.
struct EffectiveRead {
    int producer = -1;  ///< a node that is not virtual, or -1
    int input = -1;
    int tuple_index = 0;
    std::vector<Halide::Expr> indices;  ///< over the reader's axes and variables, in simplest form
};

class StageGraph {
public:
    /// `writes_through_maps`: an output is written where its value is computed, through the index maps behind it that only rename places.
    explicit StageGraph(const Algorithm &algorithm, bool writes_through_maps = true);

    const Algorithm &algorithm() const { return algorithm_; }
    const std::vector<StageNode> &nodes() const { return nodes_; }
    const StageNode &node(int index) const { return nodes_[index]; }
    const std::vector<GraphOutput> &outputs() const { return outputs_; }
    int find_stage(const std::string &name) const;  ///< index of the node, or -1
    int find_input(const std::string &name) const;  ///< index of the algorithm's input, or -1
    /// Reads through virtual stages; computed once a node.
    const std::vector<EffectiveRead> &effective_reads(int node) const;
    /// Nodes that are not virtual, or are outputs: each belongs to exactly one kernel as its own.
    std::vector<int> real_nodes() const;
    /// Whether an index map is copied into its readers or stored; what reads it is looked up anew.
    void set_virtual(int node, bool is_virtual);
    /// A product is taken for a reduction whose rows are its elements.
    void multiply_in_rows(int node) { nodes_[node].form = Form::reduction; }

private:
    void resolve(int index);
    GraphOutput written_by(int node, const TensorOutput &output) const;
    void mark_live();
    void measure(StageNode &node);
    void mark_virtual();

    const Algorithm &algorithm_;
    std::vector<StageNode> nodes_;
    std::vector<GraphOutput> outputs_;
    std::unordered_map<std::string, int> stage_indices_, input_indices_;
    mutable std::vector<std::optional<std::vector<EffectiveRead>>> effective_;  ///< for each node
};

/// Arithmetic operations of expressions, index arithmetic left out; `expensive` is set where a function or a division is among them.
int arithmetic_cost(const std::vector<Halide::Expr> &values, bool &expensive);

}  // namespace tilewright
