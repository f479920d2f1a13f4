// Views: how an alias is read from the tensor whose storage it shares, and how a write through it reaches that tensor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/graph.h"

namespace tilewright {

/// One step from a tensor to a view of it.
struct ViewStep {
    enum class Kind { reshape, permute, slice, select, diagonal, as_strided, expand, bitcast, unfold };
    Kind kind = Kind::reshape;
    std::vector<NamedArgument> arguments;  ///< of the operator that makes the view, without the tensor
    TensorMeta parent, result;
    std::string origin;  ///< node and operator, for errors
};

/// What an instruction's result shares with its first tensor argument.
struct Aliasing {
    enum class Kind {
        none,      ///< a tensor of its own
        identity,  ///< the same tensor
        view,      ///< `steps[0]`
        views,     ///< several results, read by getitem: `steps[i]`
    };
    Kind kind = Kind::none;
    Node *source = nullptr;
    std::vector<ViewStep> steps;
};

Aliasing aliasing_of(const Node &node);

/// Adds a node that reads the view from its parent's value.
Node *read_view(Graph &graph, const ViewStep &step, Node *parent);

/// Adds nodes that give the parent's value after the view's was replaced. UserError where elements of the view overlap.
Node *write_view(Graph &graph, const ViewStep &step, Node *parent, Node *value);

}  // namespace tilewright
