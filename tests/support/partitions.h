// Partitions for tests, from graph text of core operators.
#pragma once

#include <string>

#include "lowering/fusion/fusion.h"

namespace tilewright::tests {

/// Translates and partitions; every kernel is verified.
Partition partition_of(const std::string &graph_lines, const FusionOptions &options = {});

/// The names of each kernel's stages in the order of the calls: "amax sub exp sum div | dot".
std::string stages_of(const Partition &partition);

/// The decision about an edge between two stages of the whole algorithm; fails the test where there is none.
FusionDecision decision(const Partition &partition, const std::string &producer, const std::string &consumer);

/// Lines for softmax over the last of two dimensions: reads `x`, yields `y`; names begin with `prefix`.
std::string softmax_lines(const std::string &x, const std::string &y, int rows, int columns);

}  // namespace tilewright::tests
