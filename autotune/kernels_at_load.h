// Which kernels a model runs once, when it is loaded: their time does not matter.
#pragma once

#include <vector>

#include "dsl/graph/program.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// For each kernel of the partition, whether all that its calls read is computed from weights that no run changes.
std::vector<bool> kernels_at_load(const Program &program, const Partition &partition);

}  // namespace tilewright
