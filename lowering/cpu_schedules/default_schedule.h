// Schedules for the CPU where a schedule file has none: rows, columns, products, windows and scans each get the loop nest that usually
// serves. What is chosen is a list of directives like any other.
#pragma once

#include "dsl/schedule/schedule.h"
#include "lowering/fixed_inputs.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

Directives default_cpu_schedule(const Kernel &kernel, const FixedInputs &fixed = {});

}  // namespace tilewright
