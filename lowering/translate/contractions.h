// What matrix products and convolutions share.
#pragma once

#include <string>
#include <string_view>

#include "lowering/translate/context.h"

namespace tilewright::translation {

/// The type in which products of this type are summed: float32 for half types, int32 for int8, else the type itself.
Halide::Type accumulation_type(Halide::Type type);

/// Adds the fold of `term` and, where the sums are of another type than the result, the rounding to it.
void define_sum_of_products(TranslationContext &context, const Node &node, Halide::Type accumulation, const std::vector<Extent> &reduction,
                            const std::function<Halide::Expr(const Indices &arguments, const Indices &reduced)> &term);

/// Position of a window's element in its input, and whether it is inside.
struct WindowPlace {
    Halide::Expr clamped;
    Halide::Expr is_inside;  ///< undefined where it always is
};
/// output * stride + tap * dilation - padding along a dimension of `size` elements, for outputs below `outputs` and taps below `taps`.
WindowPlace window_place(const Halide::Expr &output, const Extent &outputs, const Halide::Expr &tap, const Extent &taps, const Extent &size,
                         int stride, int padding, int dilation);
/// Joins conditions; an undefined one is true.
Halide::Expr both(const Halide::Expr &a, const Halide::Expr &b);

}  // namespace tilewright::translation
