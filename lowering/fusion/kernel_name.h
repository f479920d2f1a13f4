// Names that people read: of kernels, from their operators, and of places of the graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// "amax_exp_sum_div": the operators that matter, in order, at most four.
std::string kernel_name(const StageGraph &graph, const std::vector<int> &nodes);

/// Hands out each name once: "dot", "dot_2", …
class KernelNames {
public:
    std::string unique(const std::string &base);

private:
    std::map<std::string, int> counts_;
};

/// "dot#3": the operator that gives the group its form and which of that operator's stages it is, counted from the graph's inputs.
/// `ordinals` is filled at the first call.
std::string place_name(const StageGraph &graph, const std::vector<int> &nodes, std::map<int, std::string> &ordinals);

}  // namespace tilewright
