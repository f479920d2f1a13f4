// Columns that a block holds in registers between their reductions and their output: how many, and how long.
#pragma once

#include <cstdint>

namespace tilewright {

constexpr std::int64_t fewest_columns = 8,
                       most_columns = 16;      ///< beside each other in a block: whole sectors, more of them where columns are short
constexpr std::int64_t values_of_thread = 32;  ///< of one column
constexpr std::int64_t longest_held_column = values_of_thread * 1024 / fewest_columns;

}  // namespace tilewright
