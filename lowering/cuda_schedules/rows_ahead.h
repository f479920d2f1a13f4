// Rows that blocks fetch into shared memory before their turn: how many blocks stay, and how far each is ahead.
#pragma once

#include <optional>

#include "lowering/cuda_schedules/row_layout.h"
#include "lowering/cuda_schedules/schedule_draft.h"

namespace tilewright {

struct RowsAhead {
    std::int64_t stages = 0;     ///< rows of a block under way or computed at once; 1: it stays with one row
    std::int64_t residents = 0;  ///< blocks of a multiprocessor
};

/// `wanted`: rows ahead, fewer where shared memory has no room, 0 for none; `resident_threads`: of a multiprocessor at most. Empty where
/// the row, and one ahead if any is wanted, does not fit.
std::optional<RowsAhead> rows_ahead(const ScheduleDraft &draft, const Extent &length, const RowLayout &layout, std::int64_t wanted,
                                    std::int64_t resident_threads);

}  // namespace tilewright
