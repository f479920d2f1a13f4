// Finds what is cheaper stored than computed in a product's kernel, for the matrix unit fetches its operands from memory and stores its
// results in place.
#pragma once

#include <functional>
#include <vector>

#include "lowering/fusion/build_kernel.h"
#include "lowering/fusion/channel_layout.h"
#include "lowering/fusion/groups.h"

namespace tilewright {

/// Nodes of a group that keep its product off the matrix unit: operands that are computed in its kernel, index maps of them that no strides
/// express, and what stages after it read at other places than their own. The maps are real nodes of the graph from then on. Empty where
/// the unit multiplies the group as it is, or would not anyway.
std::vector<int> nodes_to_store(StageGraph &graph, const Groups &groups, int group, const StoredTensors &stored,
                                const ChannelLayout *channels, const std::function<bool(const Algorithm &)> &multiplies);

}  // namespace tilewright
