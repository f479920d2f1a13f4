// The scalar functions that the reference evaluator computes with.
#pragma once

#include <Halide.h>
#include <string_view>

namespace tilewright::tests {

/// A value of any element type: `f` where the type is floating point, else `i` (unsigned ones as their bits).
struct Scalar {
    double f = 0;
    std::int64_t i = 0;
};

/// Rounds to the type, or wraps into its width.
Scalar normalise(Scalar value, Halide::Type type);
Scalar convert(Scalar value, Halide::Type from, Halide::Type to);

/// A primitive of dsl/algorithm/math.h; `type` is that of its first argument. The result is not yet normalised.
using ScalarFunction = Scalar (*)(const Scalar *arguments, Halide::Type type);
ScalarFunction find_primitive(std::string_view name);  ///< nullptr where there is none

}  // namespace tilewright::tests
