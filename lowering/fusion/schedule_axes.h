// A kernel as directives see it: stages, their axes by name, and who reads whom.
#pragma once

#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// Tensors first, then stages. Axes are called as the Func's arguments and RVars are.
KernelAxes schedule_axes(const Kernel &kernel);

}  // namespace tilewright
