// What compiling one kernel gives, before it is placed in a plan.
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace tilewright {

/// Code and the steps that run it. In the steps, `code` indexes `code` here, and `buffer` counts the kernel's inputs, then its outputs,
/// then `intermediates`. Scalars and grids are extents over the symbols of the kernel's algorithm.
struct CompiledKernel {
    std::vector<CodeObject> code;
    std::vector<TensorMeta> intermediates;  ///< that the kernel's own steps hand to each other
    std::vector<Step> steps;
};

}  // namespace tilewright
