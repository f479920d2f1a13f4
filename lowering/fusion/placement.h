// Lines the stages of a group up with one iteration space, so that a row (or a tile) of one stage is the same row of all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// The iteration space of a group: that of its first reduction, product, window or scan, in the order of the tensor that it reads.
struct GroupSpace {
    std::vector<Extent> extents;
    std::vector<bool> reduced;  ///< axes along which the group's reductions run; the others are its rows
};

/// For each argument, then each reduction variable: the axis of the space, or -1.
using AxisOfVariable = std::vector<int>;

struct GroupPlacement {
    GroupSpace space;
    std::map<int, AxisOfVariable> nodes;  ///< of the nodes that have a place
    std::string refusal;                  ///< in words where the nodes do not fit together; empty where they do
    bool is_mixed = false;                ///< some reductions run along the rows of others

    /// Whether the node's value runs over the whole space.
    bool is_whole(const StageGraph &graph, int node) const;
};

/// Places nodes (in topological order) of which at least one has an update. A node that depends on such a node must have a place; one that
/// does not is computed wherever it is read.
GroupPlacement place(const StageGraph &graph, const std::vector<int> &nodes, bool allow_mixed);

/// Nodes of the group that depend on a node with an update, or have one themselves.
std::vector<bool> depends_on_update(const StageGraph &graph, const std::vector<int> &nodes);

}  // namespace tilewright
