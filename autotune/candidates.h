// The schedules of a kernel that are worth measuring.
#pragma once

#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/options.h"
#include "lowering/target.h"

namespace tilewright {

/// The default schedule first, then the ones to try before anything is known; none twice. What does not fit the kernel is left out.
std::vector<Directives> first_candidates(const Kernel &kernel, const Target &target, const Options &options);

/// Schedules that differ from this one by one move: a factor of a split halved or doubled, a parallel loop made serial, a staged copy
/// dropped. What does not fit the kernel is left out.
std::vector<Directives> neighbours(const Kernel &kernel, const Directives &schedule, const Target &target);

}  // namespace tilewright
