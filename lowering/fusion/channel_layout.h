// Finds the tensors whose channels are to lie innermost in memory: what convolutions multiply on a matrix unit, and what stands between
// them.
#pragma once

#include <map>
#include <optional>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

class ChannelLayout {
public:
    explicit ChannelLayout(const StageGraph &graph);

    /// The dimension of a node's value, or of an input of the algorithm, that is to be innermost.
    std::optional<int> innermost_of_node(int node) const;
    std::optional<int> innermost_of_input(int input) const;

private:
    void visit_convolution(int node);
    void prefer(const Halide::Internal::Call *read, int dimension);
    void spread();

    const StageGraph &graph_;
    std::map<int, int> nodes_, inputs_;
};

}  // namespace tilewright
