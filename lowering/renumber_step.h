// Steps of one kernel become steps among others: their code and tensors get other numbers.
#pragma once

#include <functional>

#include "runtime/plan.h"

namespace tilewright {

/// `tensor` renumbers what is passed as a tensor or a view of one; `elements` renumbers what is passed as an address, which is
/// an offset in elements from the tensor's first.
struct Renumbering {
    int code_base = 0;  ///< added to the number of the step's code
    std::function<void(BufferArgument &)> tensor;
    std::function<void(int &tensor, Extent &offset)> elements;
};

void renumber(Step &step, const Renumbering &renumbering);

}  // namespace tilewright
