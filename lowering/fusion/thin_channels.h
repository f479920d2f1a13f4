// Convolutions of an image with few channels: the taps and channels of a row become one axis that the matrix unit can take whole. Of an
// image in patches, all taps and channels do.
#pragma once

#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// A tensor that is computed from one input ahead of the kernel that reads it.
struct InputCopy {
    std::string from;     ///< input of the algorithm
    std::string to;       ///< tensor
    Algorithm algorithm;  ///< in0 -> out0; out0's layout is the tensor's
};

/// Rewrites such convolutions of the algorithm: an input x[n, c, h, w] is read from a copy [n, h, w * c] whose rows are padded with zeros,
/// weights from a copy [o, h, w * c], and the reduction over w and c is one over neighbours in memory. Windows
/// that stand apart are read from a copy [n, p, q, c * h * w], and multiplied. Gives the copies.
std::vector<InputCopy> widen_thin_channels(Algorithm &algorithm);

}  // namespace tilewright
