// Strides that eager execution on a GPU gives where the exporter's stand-in kernels recorded others.
#pragma once

#include "dsl/graph/graph.h"

namespace tilewright {

/// On a GPU a convolution of channels-last data gives channels-last results, and what goes element by element keeps its inputs' order of
/// dimensions; torch.export records contiguous ones. Corrects the metas of such nodes in the graph of a program that was exported on a GPU.
void restore_eager_strides(Graph &graph);

/// The strides that an elementwise operator gives a result of these sizes: the inputs' order of dimensions, first input first.
std::vector<Extent> elementwise_strides(const std::vector<TensorMeta> &inputs, const std::vector<Extent> &sizes);

}  // namespace tilewright
