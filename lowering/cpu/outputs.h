// The buffers that a kernel writes for its caller.
#pragma once

#include "lowering/cpu/build.h"

namespace tilewright {

/// Lets each stage that is wholly an output store it, and copies the others' values; fills in what of `kernel` is about outputs.
/// `kernel.stages` is complete.
void make_outputs(const Algorithm &algorithm, HalideKernel &kernel);

}  // namespace tilewright
