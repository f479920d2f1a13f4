// Rewrites a program's graph: mutations and aliasing views to a pure graph, then ATen operators to the core operators of CORE.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dsl/graph/program.h"

namespace tilewright {

/// Replaces in-place operators and writes through views by pure ones; what was mutated leaves as a further output whose OutputSpec
/// says where it is written back. Outputs that are no tensors (None, numbers, strings) leave the program. UserError where an alias
/// cannot be followed.
void functionalize(Program &program);

/// What a rule builds with: each function adds a node before the one being replaced and computes its meta.
class Builder;

/// Replaces one operator. Returns the replacement: one node, or one for each of the operator's results (in order).
using Decomposition = std::function<std::vector<Node *>(Builder &, const Node &)>;
void register_decomposition(const std::string &target, Decomposition rule);

/// Applies rules until only core operators remain, then drops dead code. UserError lists every operator that has no rule, at once.
void decompose(Program &program);

/// Makes decompose() leave an operator as it is, because translate() knows it (register_translation calls this).
void register_core_operator(const std::string &target);

/// Whether translate() accepts the operator.
bool is_core(std::string_view target);

}  // namespace tilewright
