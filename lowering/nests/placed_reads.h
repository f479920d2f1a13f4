// What stages read, directly and through inlined stages, with indices over the axes of the nest they stand in.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

/// A read as it stands in the nest: indices over the nest's axes.
struct PlacedRead {
    std::string producer;
    std::vector<Halide::Expr> indices;

    /// The same for reads of the same place.
    std::string key() const;
};

/// The reads that stand in `e` itself.
std::vector<PlacedRead> direct_reads(const Halide::Expr &e, const Substitution &environment, const VariableRanges &ranges);

/// Those of all definitions of stage `index`, and of the inlined stages (anchor -1) that it reads; each place once.
std::vector<PlacedRead> reads_through_inlined(const Algorithm &algorithm, const std::vector<int> &anchors, int index,
                                              const Substitution &environment, const VariableRanges &ranges);

}  // namespace tilewright
