// Pixels of a tensor as places of one axis: row after row and image after image, the copy unit's order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

struct PixelWalk {
    std::string axis;
    Extent innermost = 1;  ///< places along the last dimension: more than the tensor has where the schedule pads it
};

/// `places` of dimensions of `extents`, outermost first. Empty where they are not all places of one axis in order.
std::optional<PixelWalk> match_pixel_walk(const std::vector<Halide::Expr> &places, const std::vector<Extent> &extents, const Nest &nest);

/// Where a value over `rows` and `columns` is stored: its channels are the columns, its pixels the rows, line after line.
struct PixelLines {
    Extent channels, width, lines;
    Extent pixel_stride, line_stride;  ///< elements
    Extent places;                     ///< rows from line to line
};
/// Empty where the tensor has another form, or its lines no common stride.
std::optional<PixelLines> match_pixel_lines(const tile::Buffer &target, const std::vector<Halide::Expr> &places, const Nest &nest,
                                            const std::string &rows, const std::string &columns);

}  // namespace tilewright
