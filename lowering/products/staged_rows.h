// Room in shared memory for results on their way to the tensor: strips of 64 rows, two for each warpgroup.
#pragma once

#include <cstdint>

namespace tilewright {

constexpr int staged_row_bytes = 128;   ///< what one row of a staged strip takes at most
constexpr int staged_piece_bytes = 16;  ///< that the swizzle moves together; an access of a thread

/// `by_rows`: threads store the rows, and each begins as far behind a boundary of a piece as in the tensor.
constexpr std::int64_t staging_bytes(int warpgroups, bool by_rows) {
    constexpr int rows = 64, strips = 2;
    return static_cast<std::int64_t>(strips) * warpgroups * rows * (staged_row_bytes + (by_rows ? staged_piece_bytes : 0));
}

}  // namespace tilewright
