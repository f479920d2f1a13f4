// The values that a user gives for a model's symbolic sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "dsl/graph/extent.h"

namespace tilewright {

/// What is drawn and tuned where nobody says otherwise: 64, or the nearest value of a symbol's range.
SymbolValues usual_sizes(const SymbolRanges &allowed);

/// Puts `given` over `values`. UserError for a symbol that the model has not, or a value that it does not allow.
void apply_sizes(const std::map<std::string, std::int64_t> &given, const SymbolRanges &allowed, SymbolValues &values);

}  // namespace tilewright
