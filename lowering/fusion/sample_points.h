// Points at which integer index expressions are evaluated, so that two forms of one index can be told to be equal.
#pragma once

#include <Halide.h>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/graph/extent.h"

namespace tilewright {

/// Values of variables and symbols.
using IndexPoint = std::map<std::string, std::int64_t>;

/// A variable and its extent.
struct IndexAxis {
    std::string name;
    Extent extent;
};

/// Points of a space on which index expressions are compared: corners, and others drawn from a fixed seed, for several values of the
/// symbols inside their ranges. Copies share the points.
class SamplePoints {
public:
    SamplePoints(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols);
    /// Values of an index at all points; empty where it cannot be evaluated.
    std::vector<std::int64_t> evaluate(const Halide::Expr &index) const;
    std::vector<std::int64_t> evaluate(const Extent &extent) const;

    bool is_empty() const { return size() == 0; }  ///< an axis of extent 0
    std::size_t size() const { return runs_->size() * run_length_; }
    /// Points come in runs, one for each assignment of the symbols: origin, far corner, then for each axis its unit and its end, then
    /// others.
    std::size_t run_length() const { return run_length_; }
    std::size_t unit_of(std::size_t run, std::size_t axis) const { return run * run_length_ + 2 + 2 * axis; }
    const std::vector<IndexPoint> &runs() const { return *runs_; }  ///< the symbols' values in each
    const std::vector<std::int64_t> &coordinates(const std::string &axis) const { return columns_->at(axis); }

    using Columns = std::unordered_map<std::string, std::vector<std::int64_t>>;

private:
    std::size_t run_length_ = 0;
    std::shared_ptr<const std::vector<IndexPoint>> runs_;
    std::shared_ptr<const Columns> columns_;
};

/// The value of an integer or boolean expression of these axes where it is the same at every place: all are tried, up to 65,536.
std::optional<std::int64_t> known_everywhere(const Halide::Expr &value, const std::vector<IndexAxis> &axes);

}  // namespace tilewright
