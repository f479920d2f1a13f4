// The end of a kernel that streams: sums become what its stages store.
#pragma once

#include "lowering/passes/streaming_launch.h"

namespace tilewright {

tile::Block store_streamed(StreamingLaunch &stream);

}  // namespace tilewright
