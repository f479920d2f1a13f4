// Rows of memory that the lines of a thread read in common, each to be loaded once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright {

/// Places [begin, end).
struct PlaceInterval {
    std::int64_t begin = 0, end = 0;
};

/// Rows at equal distances, each held in as many accesses of `unit` elements: line l reads run k in row first_row[k] + step * l.
struct WindowLines {
    std::int64_t start = 0;           ///< of the accesses to row 0
    std::int64_t spacing = 0;         ///< places from row to row
    std::int64_t pieces = 0;          ///< accesses a row
    std::int64_t step = 0;            ///< rows from line to line
    std::vector<PlaceInterval> rows;  ///< what is read of each
    std::vector<std::int64_t> first_row;
};

/// Empty where no row serves two lines, or the rows differ too much to be held as equals. Run k of line l lies l * `line_step` after
/// `runs[k]`; accesses begin where (place + phase) is a multiple of `unit`.
std::optional<WindowLines> share_lines(const std::vector<PlaceInterval> &runs, std::int64_t line_step, std::int64_t lines,
                                       std::int64_t unit, std::int64_t phase);

}  // namespace tilewright
