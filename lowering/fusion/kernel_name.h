// Names that people read: of kernels, from their operators, and of places of the graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// "softmax" of "aten._softmax.default", "convert" of "prims.convert_element_type": an identifier.
std::string short_operator_name(const std::string &op);

/// Names kernels after the program's operators that they compute: "layer_norm", "linear_gelu"; with the core operator where a kernel
/// computes only a part of one: "scaled_dot_product_attention_dot".
class KernelNamer {
public:
    explicit KernelNamer(const StageGraph &graph);
    std::string name(const std::vector<int> &nodes) const;

private:
    const StageGraph &graph_;
    std::map<std::string, int> stages_of_;  ///< how many stages each of the program's nodes became
};

/// The program's node that a stage comes from: "layer_norm_1" of stage "layer_norm_1_var_mean" with operator prims.var_mean.
std::string program_node(const StageNode &node);

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
