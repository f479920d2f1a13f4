// Inputs for measuring where the user gives none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// The values of a drawn tensor in the order of its memory: float types normal, integers 0 to `bound` - 1. They repeat after `elements`, a
/// prime number unless the tensor is smaller: no two rows are alike.
struct DrawnPattern {
    std::vector<std::byte> bytes;
    std::int64_t elements = 0;
};
DrawnPattern draw_pattern(DType type, std::int64_t count, std::int64_t bound, std::uint64_t seed);

/// Values of a plan's inputs; integers are 0 or 1, which every index bound allows; symbolic sizes from `sizes`, else the
/// usual ones (given_sizes.h). The same seed gives the same values. UserError for a symbol that the plan has not.
std::vector<HostTensor> draw_inputs(const Plan &plan, const std::map<std::string, std::int64_t> &sizes, std::uint64_t seed = 1);

/// Gives weights that have no value yet (plan_of_kernel) one, drawn in the same way.
void draw_weights(Plan &plan, std::uint64_t seed = 2);

/// One input, `bound` as for draw_pattern().
HostTensor draw_tensor(DType type, const std::vector<std::int64_t> &sizes, const std::vector<std::int64_t> &strides, std::int64_t bound,
                       std::uint64_t seed);

}  // namespace tilewright
