// Copies of inputs that convolutions want laid out otherwise: weights once, when a program is loaded.
#pragma once

#include "lowering/fusion/kernel.h"
#include "lowering/fusion/thin_channels.h"

namespace tilewright {

/// An algorithm that reads copies, under their inputs' names or their own.
struct RepackedAlgorithm {
    Algorithm algorithm;
    std::vector<InputCopy> copies;
};
/// Channels lie innermost (channel_layout.h), or side by side with the taps of a row (thin_channels.h).
RepackedAlgorithm repack_inputs(const Algorithm &algorithm);

/// Puts the copies that a partition of the repacked algorithm reads before its calls.
void add_copies(Partition &partition, const RepackedAlgorithm &repacked);

}  // namespace tilewright
