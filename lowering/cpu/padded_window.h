// The input of a convolution or pool with its border: a Func that holds zeros around the tensor, so that the inner loops read without
// asking whether they are inside, and whole vectors wherever they stand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"

namespace tilewright {

using ExtentsByName = std::map<std::string, std::vector<Extent>>;  ///< sizes of tensors and stages

/// The one read of a fold at sums of its arguments and reduction variables, alone or as select(inside, read, 0).
struct PaddedRead {
    Halide::Expr call;                      ///< with clamped places
    std::vector<Halide::Expr> places = {};  ///< before clamping
    bool has_border = false;
};

/// e of max(min(e, high), low), in either order, moved by a constant or not.
Halide::Expr without_clamp(const Halide::Expr &e);

/// Nothing where the fold has no such read, or several.
std::optional<PaddedRead> find_window_read(const Fold &fold, const ExtentsByName &extents);

/// What the padded Func holds at `variables`: the source inside its sizes, 0 outside where the window has a border.
Halide::Expr padded_value(const PaddedRead &read, const ExtentsByName &extents, const std::vector<Halide::Expr> &variables);

/// The fold's terms with reads of `padded` in the place of the read and the question around it.
std::vector<Halide::Expr> read_padded(const Fold &fold, const PaddedRead &read, const ExtentsByName &extents,
                                      const Halide::Internal::Function &padded);

}  // namespace tilewright
