// A lowering pass: loads from the pipeline's outputs, as updates of an output make them, are marked as loads from outside.
#pragma once

#include <Halide.h>
#include <vector>

namespace tilewright {

/// Halide 21 takes such a load for one from its own memory, whose alignment it knows, and emits an aligned vector load.
Halide::Internal::IRMutator *mark_output_loads(const std::vector<Halide::Func> &outputs);

}  // namespace tilewright
