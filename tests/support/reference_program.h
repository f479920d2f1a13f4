// Runs a captured program by the reference evaluator, from archive to values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowering/fusion/fusion.h"

namespace tilewright::tests {

/// Reads the archive, translates it and evaluates it on in0…; compares its user outputs with out0…, `tolerance` as for difference() and
/// without regard to the sign of zeros. For each output: empty where it agrees. With options, kernel by kernel.
std::vector<std::string> run_by_reference(const std::string &archive, const std::string &tensors, double tolerance,
                                          const std::optional<FusionOptions> &options = {});

}  // namespace tilewright::tests
