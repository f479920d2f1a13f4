// The end of a kernel that streams: sums become what its stages store.
#pragma once

#include "lowering/streaming/streaming_launch.h"

namespace tilewright {

tile::Block store_streamed(StreamingLaunch &stream);

/// `body` at every place of the sums: n_group, m_half, n_lane.
tile::Block over_sums(const StreamingLaunch &stream, tile::Block body);
tile::Block only_existing_rows(const StreamingLaunch &stream, tile::Block body);

}  // namespace tilewright
