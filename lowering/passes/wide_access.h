// Whether the lanes of a vector may move in one access, and if not, why.
#pragma once

#include "lowering/passes/launch_ranges.h"

namespace tilewright {

/// Whether the place is known to lie in the buffer: each index is an axis of the dimension's extent, or has bounds in it.
bool is_inside(const tile::Launch &launch, const VariableRanges &ranges, const tile::Buffer &buffer,
               const std::vector<Halide::Expr> &indices);

class WideAccess {
public:
    WideAccess(const tile::Launch &launch, const SymbolRanges &symbols)
        : launch_(launch), symbols_(symbols), ranges_(launch_ranges(launch, symbols)) {}

    /// Empty where element v of the vector lies v elements after the first, and the first on a boundary that the access may use; else the
    /// alignment, stride or extent that forbids it, in words.
    std::string why_narrow(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices, const tile::For &loop, int lanes) const;
    /// Likewise of a vector whose lanes lie behind each other, but begin anywhere.
    std::string why_apart(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices, const tile::For &loop, int lanes) const;
    bool is_inside(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices) const {
        return tilewright::is_inside(launch_, ranges_, buffer, indices);
    }
    const VariableRanges &ranges() const { return ranges_; }

private:
    /// `first` becomes the place of the first lane in memory, counted in elements. Empty, or why the lanes do not follow it.
    std::string find_first(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices, const tile::For &loop, int lanes,
                           Halide::Expr &first) const;

    const tile::Launch &launch_;
    const SymbolRanges &symbols_;
    VariableRanges ranges_;
};

/// Bytes of one access of as many lanes.
std::int64_t access_bytes(const tile::Buffer &buffer, int lanes);
/// What keeps the places of a tensor from the boundaries of wide accesses: where it begins, or its strides; "" for neither.
std::string why_unaligned(const tile::Buffer &buffer, std::int64_t bytes);
/// Whether the vectors of the loop begin at multiples of their length.
bool begins_at_multiples(const tile::Axis &axis, const tile::For &loop);
bool is_written(const tile::Block &block, const std::string &buffer);
/// Registers for one vector of a buffer's elements.
tile::Buffer add_vector_registers(tile::Launch &launch, const tile::Buffer &of, int lanes);
/// What is now accessed by as many bytes must begin accordingly.
void note_alignment(tile::Launch &launch, const std::string &buffer, std::int64_t bytes);

}  // namespace tilewright
