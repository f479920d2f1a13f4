// What the inputs and outputs of an exported program stand for.
#pragma once

#include <boost/json/value.hpp>

#include "dsl/capture/export_graph.h"
#include "dsl/graph/program.h"

namespace tilewright {

/// Adds a placeholder for each input, in order. Weights get their qualified names, not yet their values.
void read_inputs(Program &program, GraphReader &reader, const boost::json::object &signature);

/// Adds the output node, after all instructions.
void read_outputs(Program &program, GraphReader &reader, const boost::json::object &signature);

}  // namespace tilewright
