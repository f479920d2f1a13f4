// In-place operators: which they are, and the pure computation of what they write.
#pragma once

#include <string_view>

#include "dsl/graph/graph.h"

namespace tilewright {

enum class WriteKind {
    none,
    value,     ///< writes a new value into its first argument and returns it
    metadata,  ///< changes only how its first argument is viewed (transpose_, squeeze_, …)
    refused,   ///< resizes or replaces storage, or writes into an `out` argument
};
WriteKind write_kind(const Node &node);

/// Adds the nodes that compute what an in-place operator leaves in its first argument, whose value and metadata are `self`'s: of the same
/// sizes and element type. The node's arguments hold values that are up to date.
Node *written_value(Graph &graph, const Node &node, const TensorMeta &self);

}  // namespace tilewright
