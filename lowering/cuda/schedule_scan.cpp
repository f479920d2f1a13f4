#include "lowering/cuda/shape_schedules.h"

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda/row_layout.h"

namespace tilewright {

void schedule_scan(ScheduleDraft &draft, const Stage &stage) {
    const auto fold = match_fold(stage.func);
    const int axis = fold->scan_axis, last = stage.rank() - 1;
    StageSchedule s = draft.builder[stage.name()];
    if (axis == last) {
        const std::string rows = draft.fuse_arguments(stage, 0, last, "rows");
        if (!rows.empty()) {
            s.gpu_blocks(rows);
        }
        const std::int64_t width = vector_width(draft.algorithm, stage, stage.extents[last]);
        std::string outer = argument(last);
        if (width > 1) {
            s.split(outer, "vectors", "lane", width).vectorize("lane");
            outer = "vectors";
        }
        s.split(outer, "step", "thread", 256).gpu_threads("thread");
        return;
    }
    std::string before = draft.fuse_arguments(stage, 0, axis, "before");
    const std::string after = draft.fuse_arguments(stage, axis + 1, stage.rank(), "after");
    if (!before.empty()) {
        s.gpu_blocks(before);
    }
    s.split(after, "block", "thread", 128).reorder(argument(axis), "thread", "block").gpu_blocks("block").gpu_threads("thread");
}

}  // namespace tilewright
