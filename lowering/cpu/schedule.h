// Turns the loops that a schedule asks for into Halide's own scheduling calls.
#pragma once

#include "dsl/schedule/loop_nest.h"
#include "lowering/cpu/build.h"

namespace tilewright {

/// Schedules the Funcs of `built` as `scheduled` says. What it leaves open: stages of one expression are inlined, others computed at the
/// root; the last argument is the innermost loop.
void apply_schedule(const ScheduledKernel &scheduled, HalideKernel &built);

}  // namespace tilewright
