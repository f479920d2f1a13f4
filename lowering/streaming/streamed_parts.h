// Blocks that share the keys of a tile of rows: what each has summed goes to scratch memory, and a second launch merges it; or it stays in
// shared memory, and the first block of their cluster merges it.
#pragma once

#include "lowering/streaming/streaming_launch.h"

namespace tilewright {

class StreamedParts {
public:
    explicit StreamedParts(StreamingLaunch &stream);

    /// The end of a block that has seen a part of the keys. In a cluster the first block holds the whole then, where `is_first()`.
    tile::Block finish();
    static Halide::Expr is_first() { return tile::variable("part") == 0; }
    /// Other blocks read this one's shared memory until then.
    tile::Block leave() const;
    /// What the blocks of this launch's piece have summed, in its registers; `stream` is of the role `merges`.
    tile::Block merge(StreamingLaunch &stream) const;

private:
    tile::Block store();
    tile::Statement merge_part(StreamingLaunch &stream, const std::string &function, const std::string &sums, const std::string &rows,
                               const Halide::Expr &piece) const;

    StreamingLaunch &stream_;
    tile::Buffer sums_, rows_;  ///< [piece, row, column]; [piece, row, maximum and total]; of one piece in shared memory
};

}  // namespace tilewright
