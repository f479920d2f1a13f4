// Which values of a kernel's integer inputs are places of a tensor, so that inputs drawn for measuring are spread over the whole of it.
#pragma once

#include <map>
#include <string>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// For each integer input that is used as an index, how many values are allowed: the smallest of the axes that it indexes.
std::map<std::string, std::int64_t> index_bounds(const Algorithm &algorithm, const SymbolValues &symbols);

}  // namespace tilewright
