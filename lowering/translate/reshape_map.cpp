#include "lowering/translate/reshape_map.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"

namespace tilewright::translation {

using Halide::Expr;

namespace {

/// A shape without its dimensions of size 1.
struct Dense {
    std::vector<Extent> sizes;
    std::vector<std::size_t> dims;
};

Dense drop_units(const std::vector<Extent> &sizes) {
    Dense dense;
    for (std::size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] != Extent(1)) {
            dense.sizes.push_back(sizes[i]);
            dense.dims.push_back(i);
        }
    }
    return dense;
}

/// The fewest leading dimensions of both shapes that hold equally many elements; all of them where no fewer do.
std::pair<std::size_t, std::size_t> next_group(const std::vector<Extent> &from, std::size_t i, const std::vector<Extent> &to,
                                               std::size_t j) {
    std::size_t most = from.size() - i + to.size() - j;
    std::vector<Extent> left{1}, right{1};
    for (std::size_t k = i; k < from.size(); k++) {
        left.push_back(left.back() * from[k]);
    }
    for (std::size_t k = j; k < to.size(); k++) {
        right.push_back(right.back() * to[k]);
    }
    for (std::size_t total = 2; total < most; total++) {
        for (std::size_t a = 1; a < total; a++) {
            if (a < left.size() && total - a < right.size() && left[a] == right[total - a]) {
                return {a, total - a};
            }
        }
    }
    return {from.size() - i, to.size() - j};
}

}  // namespace

std::vector<Expr> delinearise(const Expr &linear, const std::vector<Extent> &sizes) {
    std::vector<Expr> indices(sizes.size());
    Extent below = 1;
    for (std::size_t k = sizes.size(); k-- > 0;) {
        Expr index = below == Extent(1) ? linear : linear / to_halide(below);
        indices[k] = k == 0 ? index : index % to_halide(sizes[k]);
        below = below * sizes[k];
    }
    return indices;
}

std::vector<Expr> reshape_map(const std::vector<Extent> &from, const std::vector<Extent> &to, const std::vector<Expr> &indices) {
    std::vector<Expr> map(from.size(), Expr(0));
    if (std::find(to.begin(), to.end(), Extent(0)) != to.end()) {
        return map;  // no element is ever read
    }
    Dense source = drop_units(from), target = drop_units(to);
    std::size_t i = 0, j = 0;
    while (i < source.sizes.size() && j < target.sizes.size()) {
        auto [sources, targets] = next_group(source.sizes, i, target.sizes, j);
        Expr linear = indices[target.dims[j]];
        for (std::size_t k = j + 1; k < j + targets; k++) {
            linear = linear * to_halide(target.sizes[k]) + indices[target.dims[k]];
        }
        std::vector<Extent> sizes(source.sizes.begin() + static_cast<std::ptrdiff_t>(i),
                                  source.sizes.begin() + static_cast<std::ptrdiff_t>(i + sources));
        std::vector<Expr> group = delinearise(linear, sizes);
        for (std::size_t k = 0; k < sources; k++) {
            map[source.dims[i + k]] = group[k];
        }
        i += sources;
        j += targets;
    }
    return map;
}

}  // namespace tilewright::translation
