// Blocks that share the keys of a tile of rows: what each has summed goes to scratch memory, and a second launch merges it.
#pragma once

#include "lowering/passes/streaming_launch.h"

namespace tilewright {

class StreamedParts {
public:
    explicit StreamedParts(StreamingLaunch &stream);

    /// The end of a block that has seen a part of the keys.
    tile::Block store();
    /// What the blocks of this launch's piece have summed, in its registers; `stream` is of the role `merges`.
    tile::Block merge(StreamingLaunch &stream) const;

private:
    StreamingLaunch &stream_;
    tile::Buffer sums_, rows_;  ///< [piece, row, column]; [piece, row, maximum and total]
};

}  // namespace tilewright
