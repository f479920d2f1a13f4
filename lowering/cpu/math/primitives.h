// The CPU's meaning of each primitive of dsl/algorithm/math.h, from legalised arguments.
#pragma once

#include <Halide.h>
#include <string_view>
#include <vector>

namespace tilewright {

/// InternalError for a name that is not a primitive, or not one of these types.
Halide::Expr expand_primitive(std::string_view name, Halide::Type type, const std::vector<Halide::Expr> &args);

// NaN wins; a where the two are equal, so that minimum(-0.0, 0.0) is -0.0 and maximum(-0.0, 0) stays -0.0 as in PyTorch's relu.
Halide::Expr minimum_of(const Halide::Expr &a, const Halide::Expr &b);
Halide::Expr maximum_of(const Halide::Expr &a, const Halide::Expr &b);

}  // namespace tilewright
