// Integer index expressions: composed and brought into a simple form. Indices are integers, so Halide's simplifier may be used on them;
// floats never pass through here.
#pragma once

#include <Halide.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lowering/fusion/sample_points.h"

namespace tilewright {

/// Replaces variables by expressions, keeping shared parts shared.
Halide::Expr bind_variables(const Halide::Expr &expression, const std::map<std::string, Halide::Expr> &values);

/// The index in its simplest form: a variable or a constant where it equals one at every sample point, else Halide's simplification.
Halide::Expr simplest_index(const Halide::Expr &index, const std::vector<IndexAxis> &axes, const SamplePoints &samples);

/// Whether indices over these axes into a tensor of these sizes keep the row-major number of every element: a reshape.
bool is_reshape(const std::vector<Halide::Expr> &indices, const std::vector<IndexAxis> &axes, const std::vector<Extent> &sizes,
                const SamplePoints &samples);

/// Indices into a tensor of `to` sizes, over d0, d1, … of `from` sizes, that keep the row-major number.
std::vector<Halide::Expr> reshape_indices(const std::vector<Extent> &from, const std::vector<Extent> &to);

/// Strides and offset of `address` (an element number) as a linear function of the axes, where it is one. Each stride is one of
/// `candidates` or a constant.
struct LinearAddress {
    std::vector<Extent> strides;  ///< for each axis
    Extent offset = 0;
};
std::optional<LinearAddress> linear_address(const std::vector<std::int64_t> &address, const std::vector<IndexAxis> &axes,
                                            const SamplePoints &samples, const std::vector<Extent> &candidates);

}  // namespace tilewright
