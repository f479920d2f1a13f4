// Chooses the order in which a stored intermediate's dimensions lie in memory, so that its readers see it without index arithmetic.
#pragma once

#include "lowering/fusion/channel_layout.h"
#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// The layout of a node's value (an element of its tuple) for all that read it: as `channels` asks, else row-major, or permuted where that
/// lets every read be a strided view and row-major does not (the transpose after attention, for one). The innermost dimension stays
/// innermost if it can. Rows of a product's result, and of what the matrix unit multiplies, are padded to where wide accesses can begin.
TensorMeta storage_layout(const StageGraph &graph, const ChannelLayout *channels, int node, int element);

/// Whether the tensor runs along the dimension, and the copy unit can follow its other strides.
bool lies_innermost(const TensorMeta &meta, int dimension);

/// Row-major, but for the dimensions that lie innermost, outermost first. What they hold together is padded to where the copy unit can
/// begin.
TensorMeta with_innermost(DType dtype, const std::vector<Extent> &sizes, const std::vector<int> &innermost);

}  // namespace tilewright
