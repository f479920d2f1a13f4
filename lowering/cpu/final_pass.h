// The last lowering pass: what Halide 21's code generator would get wrong is put so that it gets it right.
#pragma once

#include <Halide.h>
#include <vector>

namespace tilewright {

/// * A load from one of the pipeline's outputs, as its update makes them, is marked as a load from outside: Halide takes it for one from
///   its own memory, whose alignment it knows, and emits an aligned vector load.
/// * A strict division by a constant 0.0, which Halide refuses, divides by a product that is 0.0.
Halide::Internal::IRMutator *make_final_pass(const std::vector<Halide::Func> &outputs);

}  // namespace tilewright
