// What a run will give back, told before it starts, so that callers may provide the outputs' memory.
#pragma once

#include <span>
#include <vector>

#include "runtime/executor.h"
#include "runtime/plan.h"

namespace tilewright {

struct OutputPlace {
    DType dtype = DType::float32;
    std::vector<std::int64_t> sizes, strides;
    int input = -1;   ///< this output is that user input itself; -1: memory of its own
    int output = -1;  ///< it is that earlier output itself; -1: it is none
};
/// UserError as bind_symbols().
std::vector<OutputPlace> describe_outputs(const Plan &plan, std::span<const Tensor> inputs);

}  // namespace tilewright
