// Indices read from tensors: checked against the extent they index, the first fault of a run reported.
#pragma once

#include "types.h"

namespace tw {

/// The plan's error flag. `site` is the place in the plan's table plus 1; 0 while all is well.
struct status {
    int32 site;
    int32 unused;
    int64 index;
    int64 size;
};

/// `index` in [0, size), or in [-size, size) with `wrap`, as a place from 0. Otherwise raises the flag and yields 0.
__device__ __forceinline__ int32 checked_index(status *flag, int64 index, int64 size, bool wrap, int32 site) {
    const int64 place = wrap && index < 0 ? index + size : index;
    if (place >= 0 && place < size) {
        return static_cast<int32>(place);
    }
    if (atomicCAS(&flag->site, 0, site + 1) == 0) {
        flag->index = index;
        flag->size = size;
    }
    return 0;
}

}  // namespace tw
