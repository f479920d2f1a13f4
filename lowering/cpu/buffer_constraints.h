// Tells Halide the extents and strides of a buffer.
#pragma once

#include <Halide.h>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Extents, strides and offsets as Halide constrains a buffer's dimensions. Outermost first, as PyTorch has them. Of a tuple's buffers only
/// the first may have its extents constrained: Halide takes them as the others'.
template<typename Buffer> void constrain(Buffer buffer, const TensorMeta &meta, bool is_first = true) {
    for (int i = 0; i < meta.rank(); i++) {
        if (is_first) {
            buffer.dim(i).set_min(0).set_extent(to_halide(meta.sizes[i]));
        }
        buffer.dim(i).set_stride(to_halide(meta.strides[i]));
    }
}

}  // namespace tilewright
