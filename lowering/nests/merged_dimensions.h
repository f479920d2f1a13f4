// Neighbouring dimensions of a tensor that lie together in memory, read as one where a block reads no box of them but one of both together.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

class MergedDimensions {
public:
    /// Dimensions at which the block's part of `place` is no box are merged with their neighbours, as far as memory allows.
    MergedDimensions(const Nest &nest, const tile::Buffer &tensor, const std::vector<Halide::Expr> &place,
                     const std::set<std::string> &around);

    std::vector<Halide::Expr> merge(const std::vector<Halide::Expr> &place) const;
    std::vector<Halide::Expr> split(const std::vector<Halide::Expr> &merged) const;
    std::size_t rank() const { return groups_.size(); }
    Extent extent(std::size_t merged) const;
    /// Elements between neighbours.
    Extent stride(std::size_t merged) const { return tensor_.strides[groups_[merged].back()]; }

private:
    const Nest &nest_;
    const tile::Buffer &tensor_;
    std::vector<std::vector<std::size_t>> groups_;  ///< dimensions of the tensor, one list each
};

}  // namespace tilewright
