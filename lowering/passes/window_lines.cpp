#include "lowering/passes/window_lines.h"

#include <algorithm>

namespace tilewright {
namespace {

/// Intervals that touch are one row.
std::vector<PlaceInterval> merge(std::vector<PlaceInterval> all) {
    std::sort(all.begin(), all.end(), [](const PlaceInterval &a, const PlaceInterval &b) { return a.begin < b.begin; });
    std::vector<PlaceInterval> rows;
    for (const PlaceInterval &each : all) {
        if (rows.empty() || each.begin > rows.back().end) {
            rows.push_back(each);
        }
        rows.back().end = std::max(rows.back().end, each.end);
    }
    return rows;
}

std::int64_t row_of(const std::vector<PlaceInterval> &rows, std::int64_t place) {
    return std::find_if(rows.begin(), rows.end(), [&](const PlaceInterval &row) { return row.begin <= place && place < row.end; }) -
           rows.begin();
}

}  // namespace

std::optional<WindowLines> share_lines(const std::vector<PlaceInterval> &runs, std::int64_t line_step, std::int64_t lines,
                                       std::int64_t unit, std::int64_t phase) {
    std::vector<PlaceInterval> all;
    for (std::int64_t line = 0; line < lines; ++line) {
        for (const PlaceInterval &run : runs) {
            all.push_back({run.begin + line * line_step, run.end + line * line_step});
        }
    }
    WindowLines result;
    result.rows = merge(all);
    result.step = row_of(result.rows, runs[0].begin + line_step) - row_of(result.rows, runs[0].begin);
    if (result.step < 1 || result.rows.size() == all.size() || line_step % result.step != 0 || line_step / result.step % unit != 0) {
        return std::nullopt;
    }
    result.spacing = line_step / result.step;
    for (const PlaceInterval &run : runs) {
        result.first_row.push_back(row_of(result.rows, run.begin));
        for (std::int64_t line = 0; line < lines; ++line) {
            if (row_of(result.rows, run.begin + line * line_step) != result.first_row.back() + result.step * line) {
                return std::nullopt;
            }
        }
    }
    const auto count = static_cast<std::int64_t>(result.rows.size());
    std::int64_t first = result.rows[0].begin, last = result.rows[0].end, widest = 0;
    for (std::int64_t r = 0; r < count; ++r) {
        const PlaceInterval &row = result.rows[r];
        first = std::min(first, row.begin - r * result.spacing);
        last = std::max(last, row.end - r * result.spacing);
        widest = std::max(widest, row.end - row.begin);
    }
    result.start = first - ((phase + first) % unit + unit) % unit;
    result.pieces = (last - result.start + unit - 1) / unit;
    return result.pieces * unit > widest + 2 * unit ? std::nullopt : std::optional(result);
}

}  // namespace tilewright
