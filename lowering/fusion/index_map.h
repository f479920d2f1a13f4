// Integer index expressions: composed, evaluated at points and brought into a simple form. Indices are integers, so Halide's simplifier may
// be used on them; floats never pass through here.
#pragma once

#include <Halide.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Values of variables and symbols.
using IndexPoint = std::map<std::string, std::int64_t>;

/// The value of an index expression, or nothing where it reads a tensor or a variable that the point does not have.
std::optional<std::int64_t> evaluate_index(const Halide::Expr &index, const IndexPoint &point);

/// Replaces variables by expressions, keeping shared parts shared.
Halide::Expr bind_variables(const Halide::Expr &expression, const std::map<std::string, Halide::Expr> &values);

/// A variable and its extent.
struct IndexAxis {
    std::string name;
    Extent extent;
};

/// Points of a space on which index expressions are compared: corners, and others drawn from a fixed seed, for several values of the
/// symbols inside their ranges.
class SamplePoints {
public:
    SamplePoints(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols);
    const std::vector<IndexPoint> &points() const { return points_; }
    /// Values of an index at all points; empty where it cannot be evaluated.
    std::vector<std::int64_t> evaluate(const Halide::Expr &index) const;
    std::vector<std::int64_t> evaluate(const Extent &extent) const;
    bool is_empty() const { return points_.empty(); }  ///< an axis of extent 0

private:
    std::vector<IndexPoint> points_;
};

/// The index in its simplest form: a variable or a constant where it equals one at every sample point, else Halide's simplification.
Halide::Expr simplest_index(const Halide::Expr &index, const std::vector<IndexAxis> &axes, const SamplePoints &samples);

/// Strides and offset of `address` (an element number) as a linear function of the axes, where it is one. Each stride is one of
/// `candidates` or a constant.
struct LinearAddress {
    std::vector<Extent> strides;  ///< for each axis
    Extent offset = 0;
};
std::optional<LinearAddress> linear_address(const std::vector<std::int64_t> &address, const std::vector<IndexAxis> &axes,
                                            const SamplePoints &samples, const std::vector<Extent> &candidates);

}  // namespace tilewright
