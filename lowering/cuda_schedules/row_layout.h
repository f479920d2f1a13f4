// How a row is spread over the threads of a block, from its length alone: where default schedules and the search start.
#pragma once

#include <initializer_list>

#include "dsl/algorithm/algorithm.h"
#include "lowering/cuda_schedules/schedule_draft.h"

namespace tilewright {

/// Elements that a 16-byte access of the narrowest tensor over the stage's last axis holds, as far as `length` divides by it; 1 to 8.
std::int64_t vector_width(const Algorithm &algorithm, const Stage &stage, const Extent &length);

/// The same where a row of `shortest` elements or more begins anywhere in memory and its vectors are better moved to where it is aligned,
/// by align(); 1 where not.
std::int64_t aligned_vector(const ScheduleDraft &draft, const Stage &stage, const Extent &length, std::int64_t shortest = 2048);

struct RowLayout {
    std::int64_t vector = 1;
    std::int64_t threads = 32;  ///< for one row
    std::int64_t rows_per_block = 1;
    std::int64_t blocks = 1;    ///< of a cluster, that share one row
    std::int64_t steps = 1;     ///< vectors a thread; 0 where the length is symbolic
    bool in_registers = false;  ///< the whole row: the steps are unrolled
};

/// What a layout has to respect.
struct RowLimits {
    int kept = 1;                  ///< values of the row that are held at once, in float registers
    std::int64_t loads = 4;        ///< vectors a thread; 4 is what a plain copy is fastest with
    int largest_cluster = 1;       ///< blocks that may share one row
    std::int64_t enough_rows = 1;  ///< rows of a warp each that fill the machine; with fewer a short row takes more threads
    std::int64_t rows = 1;
    std::int64_t row_tensors = 2;  ///< that are read row by row
};
RowLayout row_layout(const Extent &length, std::int64_t vector, const RowLimits &limits, const SymbolRanges &symbols);

/// A long row in the registers of one block as it lies in memory, so that two blocks a multiprocessor overlap loads and arithmetic.
/// `register_bytes`: what one vector of all tensors takes; `most_bytes`: of the row in one thread. The first of `threads` with which the
/// row fits; steps is 0 where there is none.
RowLayout packed_row_layout(std::int64_t length, std::int64_t vector, std::int64_t register_bytes,
                            std::initializer_list<std::int64_t> threads = {256, 512}, std::int64_t most_bytes = 400);

/// A layout with some of its numbers given; 0 leaves one to the layout. The length is a constant.
struct RowChoice {
    std::int64_t threads = 0, rows_per_block = 0, blocks = 0;
};
RowLayout row_layout_of(const Extent &length, RowLayout layout, const RowChoice &choice);

}  // namespace tilewright
