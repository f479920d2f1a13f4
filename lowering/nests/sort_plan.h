// Who sorts a row, and with how many threads: what a schedule says, or what the row's length suggests.
#pragma once

#include "dsl/algorithm/sort.h"
#include "dsl/schedule/builder.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

struct SortPlan {
    enum class Sorters {
        warp,   ///< a network over what a warp holds in registers; several rows a block
        block,  ///< digit by digit in a block's registers and shared memory
        grid,   ///< a pass over global memory for each digit
    };
    Sorters sorters = Sorters::block;
    bool preselects = false;  ///< by the block: only what is among the first few of the row is sorted
    int threads = 128;        ///< a block
    int items = 1;            ///< elements a thread
    int min_blocks = 1;       ///< a multiprocessor: bounds the registers
    Halide::Type key;         ///< an unsigned integer

    std::int64_t held() const { return std::int64_t{threads} * items; }  ///< by a block
    int warps() const { return threads / 32; }
};

/// Elements of a row of the sort's input.
Extent row_length(const Algorithm &algorithm, const Stage &sort);
/// The most that it may be, at least 1: places are 32-bit numbers.
std::int64_t longest_row(const Algorithm &algorithm, const Stage &sort);
/// Directives for a sort stage.
void schedule_sort(StageSchedule stage, const Algorithm &algorithm, const Stage &sort, const GpuFacts &facts);
/// What the directives of `scheduled` (null: none) ask for. UserError where that cannot be.
SortPlan sort_plan(const Algorithm &algorithm, const Stage &sort, const ScheduledStage *scheduled, const GpuFacts &facts);

/// UserError where a directive asks of a sort what only loops can do, or of another stage what only a sort can.
void check_sort_directives(const Algorithm &algorithm, const ScheduledKernel &schedule);

/// Elements that a preselecting block has room for: a power of two, with some beyond those that are wanted.
std::int64_t room_for_first(std::int64_t count);
/// Whether the keys of a preselecting block's row fit its shared memory beside its other buffers.
bool keeps_row(const SortPlan &plan, std::int64_t longest, std::int64_t count, const GpuFacts &facts);

}  // namespace tilewright
