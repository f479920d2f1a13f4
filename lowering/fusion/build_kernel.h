// Makes a group of stages a kernel: an algorithm of its own with canonical names, in which index maps are folded away.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// What the whole partition stores: for a node and an element of its tuple, the tensors that hold it; readers take the first.
using StoredTensors = std::map<std::pair<int, int>, std::vector<StoredTensor>>;

struct BuiltKernel {
    Algorithm algorithm;
    std::vector<std::string> inputs;    ///< tensors, for each of the algorithm's inputs
    std::vector<Extent> input_offsets;  ///< elements to add to each input's offset
    std::vector<std::string> outputs;   ///< likewise
    std::vector<int> index_sites;       ///< the program's site for each that the kernel numbers
    std::vector<int> nodes;             ///< for each of the algorithm's stages
    std::vector<int> dropped;           ///< nodes whose conversion cancelled
};

/// `nodes` in topological order. With `strict`, conversions that cancel are kept.
BuiltKernel build_kernel(const StageGraph &graph, const std::vector<int> &nodes, const StoredTensors &stored, bool strict);

}  // namespace tilewright
