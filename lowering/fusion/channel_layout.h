// Finds the tensors whose channels are to lie innermost in memory: what convolutions multiply on a matrix unit, and what stands between
// them.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

class ChannelLayout {
public:
    explicit ChannelLayout(const StageGraph &graph);

    /// The dimensions of a node's value, or of an input of the algorithm, that are to be innermost, outermost first: one, or the groups of
    /// channels and what each holds. Empty where it does not matter.
    std::vector<int> innermost_of_node(int node) const;
    std::vector<int> innermost_of_input(int input) const;
    /// Whether a convolution multiplies the node's value.
    bool is_multiplied(int node) const { return multiplied_.count(node) > 0; }

private:
    void visit_convolution(int node);
    void prefer(const Halide::Internal::Call *read, int dimension);
    void spread();

    void spread_forwards(int reader);
    void spread_backwards(int reader);

    const StageGraph &graph_;
    std::map<int, std::vector<int>> nodes_, inputs_;
    std::set<int> multiplied_;
};

}  // namespace tilewright
