#include "lowering/products/pixel_walk.h"

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

std::optional<PixelWalk> match_pixel_walk(const std::vector<Expr> &places, const std::vector<Extent> &extents, const Nest &nest) {
    PixelWalk walk;
    for (const Expr &place : places) {
        for (const std::string &name : variables_of(place)) {
            if (nest.find_axis(name) && !walk.axis.empty() && walk.axis != name) {
                return std::nullopt;
            }
            walk.axis = nest.find_axis(name) ? name : walk.axis;
        }
    }
    if (walk.axis.empty()) {
        return std::nullopt;
    }
    walk.innermost = extents.back();
    if (const auto *last = places.back().as<hi::Mod>(); last && places.size() > 1) {
        const auto padded = hi::as_const_int(last->b);
        walk.innermost = padded ? max(walk.innermost, Extent(*padded)) : walk.innermost;
    }
    Expr rest = tile::variable(walk.axis);
    for (std::size_t i = places.size(); i-- > 0;) {
        const Expr extent = to_halide(i + 1 == places.size() ? walk.innermost : extents[i]);
        if (!equal_indices(places[i], i > 0 ? rest % extent : rest, nest.ranges)) {
            return std::nullopt;
        }
        rest = rest / extent;
    }
    return walk;
}

std::optional<PixelLines> match_pixel_lines(const tile::Buffer &target, const std::vector<Expr> &places, const Nest &nest,
                                            const std::string &rows, const std::string &columns) {
    PixelLines result;
    std::vector<Expr> walked;
    std::vector<Extent> extents, strides;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (as_variable(places[i]) == columns && target.strides[i] == Extent(1)) {
            result.channels = target.extents[i];
        } else if (!(target.extents[i] == Extent(1))) {
            walked.push_back(places[i]);
            extents.push_back(target.extents[i]);
            strides.push_back(target.strides[i]);
        }
    }
    const auto walk = walked.size() < 2 ? std::nullopt : match_pixel_walk(walked, extents, nest);
    if (!walk || walk->axis != rows || result.channels == Extent(0)) {
        return std::nullopt;
    }
    result.places = walk->innermost;
    result.width = extents.back();
    result.pixel_stride = strides.back();
    result.line_stride = strides[strides.size() - 2];
    result.lines = 1;
    for (std::size_t i = walked.size() - 1; i-- > 0;) {
        if (!(strides[i] == result.line_stride * result.lines)) {
            return std::nullopt;
        }
        result.lines = result.lines * extents[i];
    }
    return result;
}

}  // namespace tilewright
