// Schedules of a kernel that are worth measuring: where a search starts, and what lies beside a schedule.
#pragma once

#include <optional>
#include <vector>

#include "autotune/measure/resources.h"
#include "dsl/schedule/schedule.h"
#include "lowering/cuda_schedules/cuda_space.h"
#include "lowering/fusion/kernel.h"
#include "lowering/options.h"
#include "lowering/target.h"

namespace tilewright {

/// One step away from a schedule: a number doubled or halved (tiles, vectors, threads, blocks), equal splits of one axis together and each
/// alone, something left out or added (a parallel or unrolled loop made serial, turns, persistent blocks, bounds). Not all of them fit the
/// kernel.
std::vector<Directives> neighbours(const Directives &directives);

/// The space of one kernel on one target.
class SearchSpace {
public:
    SearchSpace(const Kernel &kernel, const Target &target, const Options &options);

    /// `start` first. On a GPU then what the lowering proposes for the kernel's shape, and the kernel as a call of each library that
    /// computes it and that the options allow. No two are equal.
    std::vector<Directives> first(const Directives &start);
    /// neighbours(), and before them what the lowering proposes beside one of its own proposals.
    std::vector<Directives> around(const Directives &directives);
    /// What more blocks at once may gain, where registers are what keeps a multiprocessor from more.
    std::vector<Directives> suggestions(const Directives &directives, const Resources &resources);

private:
    const Kernel &kernel_;
    const Options options_;
    std::optional<CudaSpace> cuda_;
    std::vector<Directives> engines_;  ///< the kernel as calls of libraries
};

}  // namespace tilewright
