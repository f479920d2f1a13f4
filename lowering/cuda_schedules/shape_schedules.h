// The rules of each kernel shape: what extents and layout suggest for a stage and what goes with it, one file a shape.
#pragma once

#include "lowering/cuda_schedules/schedule_draft.h"

namespace tilewright {

/// All elements in a row: vectors, threads, blocks; or a stencil or a transpose where the reads make one. A product or window that only
/// this stage reads is computed on the way.
void schedule_pointwise(ScheduleDraft &draft, const Stage &stage);

/// Whether the stage reads some tensor at neighbouring places along an axis, through inlined stages.
bool is_stencil(const Algorithm &algorithm, const Stage &stage);
/// Neighbouring threads along the last axis, several lines a thread: what the lines share is loaded once. `names`: at least two arguments.
void schedule_stencil(ScheduleDraft &draft, const Stage &stage, std::vector<std::string> names);

/// Where the tensor that is read lies along another axis than the one that is written: squares of registers, by way of
/// shared memory where whole lines are read and written, wide accesses on both sides.
/// False where that is not so; then nothing was done.
bool schedule_transpose(ScheduleDraft &draft, const Stage &stage, const std::vector<std::string> &names);

/// Reductions along rows that share the rows, and what stands around them, in one pass.
void schedule_rows(ScheduleDraft &draft);

/// A reduction alone. Few terms: a thread for each element. Many: a block for each element.
void schedule_reduction(ScheduleDraft &draft, const Stage &stage);

/// Reductions of the same extents that do not wait for each other take one pass: the others are computed with `stage` at its loop `place`.
void share_reduction(ScheduleDraft &draft, const Stage &stage, const std::string &place);

/// Whether neighbouring terms lie apart and neighbouring elements together: some read moves by one along the last argument.
bool keeps_innermost(const Algorithm &algorithm, const Stage &stage);
/// Blocks that share the terms of a reduction: as many as `most`, or fewer, over half of it, that all have equally many rounds of `unit`
/// terms.
std::int64_t even_parts(std::int64_t most, const Extent &terms, std::int64_t unit);
/// Columns: neighbouring threads take neighbouring columns, or few columns and neighbouring rows; rows are split over blocks until the
/// machine is full.
void schedule_columns(ScheduleDraft &draft, const Stage &stage);

/// Reductions along one axis that is not the innermost, and what stands around them, in one pass: a block holds neighbouring columns in
/// registers. False where they do not fit, or do not share one pass; then nothing was done.
bool schedule_held_columns(ScheduleDraft &draft);

/// Along the last axis: a block a row, vectors within a thread. Along another: a thread a line.
void schedule_scan(ScheduleDraft &draft, const Stage &stage);

/// Products and convolutions: tiles of sums in registers, or a stream of the large operand where the other has few rows.
void schedule_products(ScheduleDraft &draft);
/// Windows that sum over taps alone, as pools and convolutions of single channels: a thread keeps sums of neighbouring elements and loads
/// what their taps share once. `names`: arguments of `stage`, which `window` is or is computed for, slowest in memory first. False where
/// the window is none; then nothing was done.
bool schedule_taps(ScheduleDraft &draft, const Stage &stage, const Stage &window, const std::vector<std::string> &names);
/// A thread for each element, its terms one after the other.
void schedule_window(ScheduleDraft &draft, const Stage &stage);

}  // namespace tilewright
