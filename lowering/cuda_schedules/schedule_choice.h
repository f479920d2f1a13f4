// How a schedule of one kernel is drawn up from a few numbers: what the default and the search share.
#pragma once

#include <cstdint>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// The numbers that schedules of one shape differ in. 0 leaves a number to the default.
struct ScheduleChoice {
    std::int64_t threads = 0;  ///< a block, or a row
    std::int64_t steps = 0;    ///< vectors a thread, unrolled, of a pointwise kernel
    std::int64_t vector = 0;   ///< elements an access, at most what alignment allows
    std::int64_t rows_per_block = 0;
    std::int64_t parts = 0;       ///< blocks that share a column's reduction; of a kernel of rows: all its blocks, which take row after row
    std::int64_t cluster = 0;     ///< blocks that share a row
    std::int64_t ahead = 0;       ///< rows that a block fetches into shared memory before their turn; blocks take row after row. -1: none
    bool in_shared = false;       ///< a block's row lies in shared memory instead of its registers
    std::int64_t align = 0;       ///< 1: vectors begin with the row; more: where its memory is aligned, rows shared by a cluster too
    std::int64_t kept = 0;        ///< elements of one stage that a thread holds at most; more are computed again
    std::int64_t min_blocks = 0;  ///< a multiprocessor: bounds the registers; -1: nothing does
    int product = 0;              ///< which of the tiles that a product outside the matrix unit may have; -1: a thread for each element
    bool atomic = true;           ///< sums of scattered updates, whose last bits may then vary
    bool fuse_rows = true;        ///< reductions along rows and what surrounds them in one pass
};

Directives schedule_for(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice);

/// Whether the lowering accepts the directives for this kernel.
bool can_lower(const Kernel &kernel, const Directives &directives, const GpuFacts &facts);

}  // namespace tilewright
