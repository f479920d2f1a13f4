// The binary form of a plan: versioned, with a checksum. Weights' values are not part of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace tilewright {

std::vector<std::byte> save_plan(const Plan &plan);
/// Empty where the bytes are damaged or another version's.
std::optional<Plan> load_plan(std::span<const std::byte> bytes);

/// Gives the plan's weights the values of the program's placeholders of the same names. False where one is missing or differs in kind.
bool attach_weights(Plan &plan, const Program &program);

}  // namespace tilewright
