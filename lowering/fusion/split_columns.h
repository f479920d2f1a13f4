// Splits products whose columns are read in pieces, so that the pieces can meet in one kernel.
#pragma once

#include <map>
#include <string>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

struct SplitColumns {
    Algorithm algorithm;
    std::map<std::string, std::string> original_names;  ///< of stages that compute a piece: "dot_piece_1" is "dot"
};

/// A product, with the pointwise stages that run along it, of which every reader takes a piece of one axis (a slice) becomes a product for
/// each piece where all pieces meet in one pointwise stage: the gates of a recurrent cell, the two halves of a gated unit. Together they
/// compute what the one did, and their readers find their operands at one place. Products that fill a matrix unit are split in two at most.
SplitColumns split_columns(const Algorithm &algorithm);

}  // namespace tilewright
