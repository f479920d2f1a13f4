// A captured program: an op graph, what its inputs and outputs stand for, and its weights.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/graph.h"

namespace tilewright {

enum class InputKind { user_input, parameter, buffer, constant };

/// One placeholder of the graph, in order. Weights carry their value.
struct InputSpec {
    InputKind kind = InputKind::user_input;
    std::string placeholder;           ///< name of the graph's placeholder node
    std::string qualified_name;        ///< "encoder.layer.0.weight"; empty for user inputs
    std::optional<HostTensor> value;   ///< of parameters, buffers and constants
    std::optional<Argument> constant;  ///< a user input that is no tensor: the only value it may have
};

enum class OutputKind { user_output, buffer_mutation, user_input_mutation };

/// One value of the output node, in order.
struct OutputSpec {
    OutputKind kind = OutputKind::user_output;
    std::string target;              ///< of a mutation: the placeholder that is written
    std::optional<TensorMeta> meta;  ///< as PyTorch lays the value out; decompose() keeps it, since core nodes are contiguous
};

struct Program {
    std::string name;  ///< the archive's file name, without folders
    Graph graph;
    std::vector<InputSpec> inputs;
    std::vector<OutputSpec> outputs;
    SymbolRanges symbols;
};

}  // namespace tilewright
