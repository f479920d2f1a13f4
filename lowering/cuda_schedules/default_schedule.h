// Schedules for kernels that no file and no search has scheduled.
#pragma once

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// The schedule of a kernel that no file and no search has scheduled. `deterministic`: one that gives the same bits on every run.
Directives default_cuda_schedule(const Kernel &kernel, const GpuFacts &facts, bool deterministic = false);

}  // namespace tilewright
