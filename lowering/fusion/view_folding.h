// Reads a tensor through an index map as a strided view of it, so that the reader's indices are plain variables.
#pragma once

#include <optional>
#include <vector>

#include "dsl/graph/tensor.h"
#include "lowering/fusion/index_map.h"

namespace tilewright {

/// Each index is a different variable, or 0.
bool reads_at_variables(const std::vector<Halide::Expr> &indices, const std::vector<IndexAxis> &axes);
/// Each index is a different variable plus something free of variables, or free of variables: neighbours are read, and stay neighbours.
bool reads_shifted(const std::vector<Halide::Expr> &indices, const std::vector<IndexAxis> &axes);

/// Whether two shifted reads of a tensor meet at some places and differ at others.
bool overlap(const std::vector<Halide::Expr> &a, const std::vector<IndexAxis> &a_axes, const std::vector<Halide::Expr> &b,
             const std::vector<IndexAxis> &b_axes);

struct FoldedView {
    TensorMeta meta;                    ///< sizes of the variables that the address depends on; offset from the tensor's element 0
    std::vector<Halide::Expr> indices;  ///< those variables
};
/// The read as a view, where its address is linear in the variables.
std::optional<FoldedView> fold_view(const TensorMeta &tensor, const std::vector<Halide::Expr> &indices, const std::vector<IndexAxis> &axes,
                                    const SamplePoints &samples);

/// The read as one of a view in which each dimension that is read at outer * factor + inner is two, where it has such dimensions: a head
/// that several heads of queries share is read at a place of its own.
std::optional<FoldedView> split_view(const TensorMeta &tensor, const std::vector<Halide::Expr> &indices,
                                     const std::vector<IndexAxis> &axes);

}  // namespace tilewright
