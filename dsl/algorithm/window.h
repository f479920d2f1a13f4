// A factor that reads a tensor through windows: at pixel / sharers * stride + tap * dilation + offset along each dimension, zero outside of
// the tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// The place along one dimension of the tensor.
struct WindowIndex {
    std::string pixel;         ///< an argument of the stage; "" for none
    std::int64_t sharers = 1;  ///< so many neighbouring pixels share a place: outputs of one group of channels
    std::int64_t stride = 1;
    std::string tap;  ///< a reduction variable; "" for none
    std::int64_t dilation = 1;
    Extent offset = 0;

    bool is_plain() const { return tap.empty() && (pixel.empty() || (stride == 1 && sharers == 1)) && offset == Extent(0); }
};

struct WindowRead {
    const Halide::Internal::Call *read = nullptr;
    std::vector<WindowIndex> indices;  ///< for each dimension of the tensor

    bool varies_along(const std::string &variable) const;
    /// The dimension that outputs of one group share along the variable, or -1.
    int dimension_shared_along(const std::string &variable) const;
};

/// `factor` is an expression over the stage's arguments and reduction variables; conversions that lose nothing may stand around the read,
/// and a choice of zero for places outside of the tensor. Empty where the read is of another kind, or pads with anything else; pixels that
/// share places only `with_groups`.
std::optional<WindowRead> match_window_read(const Halide::Expr &factor, const std::vector<std::string> &arguments,
                                            const std::vector<std::string> &variables,
                                            const std::function<const std::vector<Extent> *(const std::string &)> &sizes_of,
                                            bool with_groups = false);

}  // namespace tilewright
