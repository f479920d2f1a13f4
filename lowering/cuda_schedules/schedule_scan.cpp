#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {

namespace {

constexpr std::int64_t threads_of_block = 256;
constexpr std::int64_t shortest_aligned = 512;  ///< a row whose vectors move to where it is aligned: its threads wait for each other anyway

/// What is made of the scan element by element is stored in the same pass.
void follow(ScheduleDraft &draft, const Stage &scan, const std::string &place) {
    for (const Stage &other : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(other.name());
        if (draft.choice.fuse_rows && role.is_output && role.form == Form::pointwise && !draft.done.count(other.name()) &&
            other.extents == scan.extents && draft.depends(other.name(), scan.name())) {
            draft.builder[other.name()].compute_with(scan.name(), place);
            draft.done.insert(other.name());
        }
    }
}

/// Threads of one row, a part of a warp where that is enough for it: several rows share a block then. A longer row takes as few steps of
/// a block as it can, and no more threads than these need.
std::int64_t threads_of_row(const Extent &vectors, std::int64_t width) {
    constexpr std::int64_t warp = 32;
    const std::int64_t most_steps = width <= 2 ? 12 : 4;
    if (!vectors.is_constant()) {
        return threads_of_block;
    }
    if (vectors.value() > most_steps * warp) {
        const std::int64_t steps = (vectors.value() + threads_of_block - 1) / threads_of_block;
        return ((vectors.value() + steps - 1) / steps + warp - 1) / warp * warp;
    }
    std::int64_t threads = 2;
    while (threads < warp && threads < vectors.value()) {
        threads *= 2;
    }
    return threads;
}

void scan_rows(ScheduleDraft &draft, const Stage &stage) {
    const int last = stage.rank() - 1;
    StageSchedule s = draft.builder[stage.name()];
    std::string rows = draft.fuse_arguments(stage, 0, last, "rows");
    const std::int64_t aligned = rows.empty() ? 1 : aligned_vector(draft, stage, stage.extents[last], shortest_aligned);
    const std::int64_t width = aligned > 1 ? aligned : draft.chosen_width(vector_width(draft.algorithm, stage, stage.extents[last]));
    const Extent vectors = ceil_div(stage.extents[last] + (aligned - 1), width);
    const std::int64_t threads = draft.choice.threads > 0 ? draft.choice.threads
                                 : rows.empty()           ? threads_of_block
                                                          : threads_of_row(vectors, width);
    std::string outer = argument(last);
    if (width > 1) {
        if (aligned > 1) {
            s.align(outer, aligned);
        }
        s.split(outer, "vectors", "lane", width).vectorize("lane");
        outer = "vectors";
    }
    s.split(outer, "step", "thread", threads);
    if (threads <= threads_of_block / 2 && !rows.empty()) {
        if (stage.extents[last].is_constant()) {
            s.unroll("step");  // loads of all steps are under way before the first is scanned
        }
        s.split(rows, "block", "row_in_block", threads_of_block / threads).gpu_blocks("block").gpu_threads("thread", "row_in_block");
        rows = "row_in_block";
    } else {
        if (!rows.empty()) {
            s.gpu_blocks(rows);
        }
        s.gpu_threads("thread");
    }
    follow(draft, stage, rows.empty() ? "step" : rows);
}

/// Long columns of which there are few: threads take parts of each, several columns beside each other so that whole sectors are read. False
/// where the columns are short or many.
bool scan_parts_of_columns(ScheduleDraft &draft, const Stage &stage, int axis, const std::string &before, const std::string &after,
                           std::int64_t lines) {
    constexpr std::int64_t sector = 32, at_once = 16, most_parts = 64, enough_lines = 64 * 1024;
    const Extent length = stage.extents[axis];
    const std::int64_t columns = std::min<std::int64_t>(sector / stage.func.types()[0].bytes(), 16);
    if (lines >= enough_lines || stage.func.types().size() != 1 || !length.is_constant() || length.value() < 16 * at_once ||
        draft.choice.threads > 0) {
        return false;
    }
    std::int64_t parts = 32 / columns;
    while (parts < most_parts && parts * at_once < length.value()) {
        parts *= 2;
    }
    StageSchedule s = draft.builder[stage.name()];
    s.split(after, "block", "column", columns)
        .split(argument(axis), "runs", "at_once", at_once)
        .unroll("at_once")
        .split("runs", "step", "part", parts);
    s.reorder("at_once", "column", "part", "step", "block");
    if (before.empty()) {
        s.gpu_blocks("block");
    } else {
        s.gpu_blocks("block", before);  // blocks beside each other read the same lines of memory
    }
    s.gpu_threads("column", "part");
    follow(draft, stage, "step");
    return true;
}

}  // namespace

void schedule_scan(ScheduleDraft &draft, const Stage &stage) {
    const auto fold = match_fold(stage.func);
    const int axis = fold->scan_axis;
    draft.done.insert(stage.name());
    if (axis == stage.rank() - 1) {
        scan_rows(draft, stage);
        return;
    }
    StageSchedule s = draft.builder[stage.name()];
    std::string before = draft.fuse_arguments(stage, 0, axis, "before");
    const std::string after = draft.fuse_arguments(stage, axis + 1, stage.rank(), "after");
    // A line's terms wait for each other, its loads do not: many are under way at once, and the lines are spread over the machine.
    constexpr std::int64_t at_once = 16, wide = 128, narrow = 32;
    const std::int64_t lines = product(stage.extents).bounds(draft.algorithm.symbols).max /
                               std::max<std::int64_t>(stage.extents[axis].bounds(draft.algorithm.symbols).max, 1);
    if (scan_parts_of_columns(draft, stage, axis, before, after, lines)) {
        return;
    }
    if (!before.empty()) {
        s.gpu_blocks(before);
    }
    const std::int64_t threads = draft.choice.threads > 0                     ? draft.choice.threads
                                 : lines / wide < draft.facts.multiprocessors ? narrow
                                                                              : wide;
    s.split(after, "block", "thread", threads);
    if (stage.extents[axis].is_constant() && stage.extents[axis].value() >= 4 * at_once) {
        s.split(argument(axis), "round", "at_once", at_once).unroll("at_once").reorder("at_once", "round", "thread", "block");
    } else {
        s.reorder(argument(axis), "thread", "block");
    }
    s.gpu_blocks("block").gpu_threads("thread");
    follow(draft, stage, "block");
}

}  // namespace tilewright
