// Schedules of a kernel that are worth measuring: the search space of the autotuner on a GPU, read off the algorithm alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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
    std::int64_t parts = 0;           ///< blocks that share a column's reduction; of a kernel of rows: all its blocks, which take row after row
    std::int64_t cluster = 0;         ///< blocks that share a row
    std::int64_t align = 0;           ///< 1: vectors begin with the row; more: where its memory is aligned, rows shared by a cluster too
    std::int64_t kept = 0;            ///< elements of one stage that a thread holds at most; more are computed again
    std::int64_t min_blocks = 0;      ///< a multiprocessor: bounds the registers; -1: nothing does
    int product = 0;                  ///< which of the tiles that a product outside the matrix unit may have; -1: a thread for each element
    bool atomic = true;               ///< sums of scattered updates, whose last bits may then vary
    bool fuse_rows = true;            ///< reductions along rows and what surrounds them in one pass
};

Directives schedule_for(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice);

/// Whether the lowering accepts the directives for this kernel.
bool can_lower(const Kernel &kernel, const Directives &directives, const GpuFacts &facts);

/// The default schedule first, then others, which the lowering may refuse; no two are equal.
std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts);

/// Proposes schedules of one kernel, and knows what each was made of: a search may go on from any of them.
class CudaSpace {
public:
    CudaSpace(const Kernel &kernel, const GpuFacts &facts) : kernel_(kernel), facts_(facts) {}

    /// cuda_candidates().
    std::vector<Directives> first();
    /// One number of a proposal changed; empty for a schedule that is none.
    std::vector<Directives> around(const Directives &proposal);

private:
    const Kernel &kernel_;
    const GpuFacts &facts_;
    std::map<std::string, ScheduleChoice> made_of_;  ///< by text
};

}  // namespace tilewright
