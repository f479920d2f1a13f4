// An order of lists of indices by their structure, so that a place is computed once.
#pragma once

#include <vector>

#include <Halide.h>

namespace tilewright {

/// Lexicographic; of lists of which one begins with the other, the shorter comes first.
struct IndexOrder {
    bool operator()(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const;
};

}  // namespace tilewright
