// Advanced indexing: which dimensions an index list covers and where its shape goes.
#pragma once

#include <optional>
#include <vector>

#include "lowering/translate/context.h"

namespace tilewright::translation {

/// One optional index tensor for each dimension of the indexed tensor; all of one shape.
class IndexList {
public:
    IndexList(TranslationContext &context, const Node &node, const TensorMeta &indexed, std::string_view tensor);

    const std::vector<Extent> &shape() const { return shape_; }
    bool is_indexed(int dim) const { return indices_[static_cast<std::size_t>(dim)].has_value(); }
    /// First of the result's dimensions that the index shape takes: where the indexed dims are adjacent, their place, otherwise 0.
    int position() const { return position_; }
    /// The place in dimension `dim` that the index tensors name at `at`; checked unless it is provably inside.
    Halide::Expr place(int dim, const Indices &at, bool wrap) const;
    Halide::Expr checked_place(int dim, const Indices &at, bool wrap) const;

private:
    std::string site(int dim) const;

    TranslationContext &context_;
    const Node &node_;
    std::string tensor_;
    std::vector<std::optional<TensorValue>> indices_;
    std::vector<Extent> shape_;
    std::vector<Extent> sizes_;
    int position_ = 0;
};

}  // namespace tilewright::translation
