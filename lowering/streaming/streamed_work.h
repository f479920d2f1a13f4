// Which rows of which plane a block of a kernel that streams works at, one piece of work after another, and which keys it visits.
#pragma once

#include <functional>
#include <vector>

#include "lowering/streaming/streaming_launch.h"

namespace tilewright {

class StreamedWork {
public:
    explicit StreamedWork(StreamingLaunch &stream);

    /// Where one of them is false the score is -inf: the form's, and the end of the last tile.
    const std::vector<Halide::Expr> &masks() const { return masks_; }

    /// The producer's part: what `body` fetches for each piece. Pieces of unequal length are taken from a common counter, and the
    /// announcement `announce(bytes count)` hands the piece's number to consumers.
    tile::Block produced(const std::function<tile::Block(const Halide::Expr &piece_exists)> &announce, tile::Block body) const;
    /// A consumer's part: `wait` until the piece is announced, `body` for each piece, `leave` at the end.
    tile::Block consumed(tile::Block wait, tile::Block body, tile::Block leave) const;

    /// The block's one piece, without pipelines.
    tile::Block alone(tile::Block body) const;

    /// The number of this piece among those of the block.
    Halide::Expr round() const;
    /// The pipelines' iteration at a step of this piece.
    Halide::Expr iteration(const Halide::Expr &step) const;
    /// The tiles of keys of this piece; a value of the block, as the tile IR spells extents.
    static Extent tile_count() { return Extent::symbol("tile_count"); }

private:
    void find_range();
    tile::Block place() const;
    tile::Block piece(tile::Block body) const;
    tile::Block rounds(const Extent &count, tile::Block body) const;
    Halide::Expr exists() const;
    Halide::Expr announced() const;

    StreamingLaunch &stream_;
    std::vector<Halide::Expr> masks_;
    PossibleRange range_;  ///< of the streamed axis, for the block's rows
    Halide::Expr first_tile_, tile_count_;
    std::string counter_;  ///< buffer of the next piece's number
};

}  // namespace tilewright
