// Inputs for measuring where the user gives none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// Values of a plan's inputs: float types normal, integers 0 or 1, which every index bound allows; symbolic sizes from `sizes`, else the
/// smallest of their range that is at least 2. The same seed gives the same values. UserError for a symbol that the plan has not.
std::vector<HostTensor> draw_inputs(const Plan &plan, const std::map<std::string, std::int64_t> &sizes, std::uint64_t seed = 1);

}  // namespace tilewright
