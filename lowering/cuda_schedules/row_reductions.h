// Reductions along the rows of a product: which stages they are, and what is kept of the product for them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// The stage reduces along an axis as long as the product's last argument, for each row.
bool reduces_rows(const Stage &stage, const Stage &product);
/// Those and what is made of them.
std::set<std::string> stages_after(const Algorithm &algorithm, const std::vector<std::string> &row_reductions);
/// Values at each place, made of the product alone, that its row reductions and what is made of those read: computed once, and kept.
std::vector<std::string> values_to_keep(const Algorithm &algorithm, const std::string &product,
                                        const std::vector<std::string> &row_reductions);

}  // namespace tilewright
