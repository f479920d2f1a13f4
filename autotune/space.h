// Schedules of a kernel that are worth measuring: where a search starts, and what lies beside a schedule.
#pragma once

#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/options.h"
#include "lowering/target.h"

namespace tilewright {

/// `start` first. On a GPU then what the lowering proposes for the kernel's shape, and a library's product where the kernel is one and
/// the options allow it. No two are equal.
std::vector<Directives> first_candidates(const Kernel &kernel, const Directives &start, const Target &target, const Options &options);

/// One step away from a schedule: a number doubled or halved (tiles, vectors, threads, blocks), equal splits of one axis together and each
/// alone, a parallel or unrolled loop made serial. Not all of them fit the kernel.
std::vector<Directives> neighbours(const Directives &directives);

/// The same, and before them what the lowering proposes beside one of its own proposals.
std::vector<Directives> neighbours(const Kernel &kernel, const Directives &directives, const Target &target);

}  // namespace tilewright
