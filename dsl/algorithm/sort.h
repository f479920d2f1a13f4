// The extern stage of a sort: its name and calling convention.
//
// `tilewright_sort` sorts each row of its input along the last axis, stably; NaN is greater than every number. The stage has two results
// of one shape: the sorted values in the input's type, and where each stood in its row, as int64. Its last extent may be less than the
// input's: then it has the first of each sorted row.
//
// As a Halide extern stage (an array of halide_buffer_t; dimension i of a buffer is argument i, the row is the last dimension):
//
//     int tilewright_sort(halide_buffer_t *input, int32_t extent, bool descending, halide_buffer_t *values, halide_buffer_t *indices);
//
// `extent` is the number of elements in a row. In a bounds query the input is required over the rows that are asked for and over
// [0, extent) of the last dimension. The type is the input buffer's; half types and booleans are sorted as they are. Returns 0.
#pragma once

#include <Halide.h>
#include <string_view>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

inline constexpr const char *sort_extern_name = "tilewright_sort";

/// Defines `func` over `arguments` as the sort of `input`'s rows of `extent` elements.
void define_sort(Halide::Func func, const std::vector<Halide::Var> &arguments, const Halide::Func &input, const Halide::Expr &extent,
                 bool descending);

/// A sort Func, taken apart.
struct Sort {
    std::string input;  ///< name of the Func or of the input tensor whose rows are sorted
    bool from_input = false;
    Halide::Expr extent;
    bool descending = false;
};
std::optional<Sort> match_sort(const Halide::Func &func);

}  // namespace tilewright
