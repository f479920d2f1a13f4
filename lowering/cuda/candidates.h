// Schedules of a kernel that are worth measuring: the search space of the autotuner on a GPU, read off the algorithm alone.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/cuda/gpu_facts.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// The numbers that schedules of one shape differ in. 0 leaves a number to the default.
struct ScheduleChoice {
    std::int64_t threads = 0;         ///< a block, or a row
    std::int64_t steps = 0;           ///< vectors a thread, unrolled, of a pointwise kernel
    std::int64_t vector = 0;          ///< elements an access, at most what alignment allows
    std::int64_t rows_per_block = 0;
    std::int64_t parts = 0;           ///< blocks that share a column's reduction
    std::int64_t min_blocks = 0;      ///< a multiprocessor: bounds the registers
    int product = 0;                  ///< which of the tiles that a product outside the matrix unit may have; -1: a thread for each element
    bool atomic = true;               ///< sums of scattered updates, whose last bits may then vary
    bool fuse_rows = true;            ///< reductions along rows and what surrounds them in one pass
};

Directives schedule_for(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice);

/// Whether the lowering accepts the directives for this kernel.
bool can_lower(const Kernel &kernel, const Directives &directives, const GpuFacts &facts);

/// The default schedule first, then others, which the lowering may refuse; no two are equal.
std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts);

/// One number of a proposal of cuda_candidates() changed; empty for a schedule that is none.
std::vector<Directives> cuda_variations(const Kernel &kernel, const GpuFacts &facts, const Directives &proposal);

}  // namespace tilewright
