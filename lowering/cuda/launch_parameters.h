// What a launch takes: its parameters as CUDA C++ declares them, and what they are bound to.
#pragma once

#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"
#include "runtime/plan.h"

namespace tilewright {

struct LaunchParameters {
    std::string declarations;  ///< one a line, indented
    std::vector<StepArgument> arguments;
};

/// BufferArgument::buffer counts the kernel's inputs, of which there are `inputs`, then its outputs.
LaunchParameters launch_parameters(const tile::Launch &launch, int inputs);

}  // namespace tilewright
