#include "lowering/nests/merged_dimensions.h"

#include "lowering/nests/block_tile.h"

namespace tilewright {

using Halide::Expr;

MergedDimensions::MergedDimensions(const Nest &nest, const tile::Buffer &tensor, const std::vector<Expr> &place,
                                   const std::set<std::string> &around)
    : nest_(nest), tensor_(tensor) {
    bool before_is_box = true;
    for (std::size_t i = 0; i < place.size(); ++i) {
        const bool is_box = tile_region(nest, {{place[i]}}, around).has_value();
        const bool lies_behind = i > 0 && tensor.strides[i - 1] == tensor.extents[i] * tensor.strides[i];
        if (!is_box && !before_is_box && lies_behind) {
            groups_.back().push_back(i);
        } else {
            groups_.push_back({i});
        }
        before_is_box = is_box;
    }
}

Extent MergedDimensions::extent(std::size_t merged) const {
    Extent result = 1;
    for (const std::size_t i : groups_[merged]) {
        result = result * tensor_.extents[i];
    }
    return result;
}

std::vector<Expr> MergedDimensions::merge(const std::vector<Expr> &place) const {
    std::vector<Expr> result;
    for (const std::vector<std::size_t> &group : groups_) {
        Expr merged = place[group[0]];
        for (std::size_t k = 1; k < group.size(); ++k) {
            merged = merged * to_halide(tensor_.extents[group[k]]) + place[group[k]];
        }
        result.push_back(group.size() > 1 ? simplify_index(merged, nest_.ranges) : merged);
    }
    return result;
}

std::vector<Expr> MergedDimensions::split(const std::vector<Expr> &merged) const {
    std::vector<Expr> result(tensor_.extents.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        Expr rest = merged[g];
        for (std::size_t k = groups_[g].size(); k-- > 1;) {
            const Expr extent = to_halide(tensor_.extents[groups_[g][k]]);
            result[groups_[g][k]] = rest % extent;
            rest = rest / extent;
        }
        result[groups_[g][0]] = rest;
    }
    return result;
}

}  // namespace tilewright
