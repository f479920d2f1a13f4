// What all lanes of a vector share in an index: quotients by multiples of the vector's length, and comparisons with them, are those of its
// first lane.
#pragma once

#include <Halide.h>
#include <string>

namespace tilewright {

/// A vector of `lanes` neighbours along `axis`; `lane` goes through it.
struct VectorAxis {
    std::string axis, lane;
    std::int64_t lanes;
};

/// Quotients and comparisons of the axis become those of AXIS.first; with `splits_remainders`, remainders become AXIS.first's plus the
/// lane.
Halide::Expr at_first_lane(const Halide::Expr &e, const VectorAxis &vector, bool splits_remainders);

}  // namespace tilewright
