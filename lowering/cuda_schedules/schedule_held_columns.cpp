#include <algorithm>
#include <optional>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda_schedules/held_columns.h"
#include "lowering/cuda_schedules/shape_schedules.h"

namespace tilewright {
namespace {

constexpr std::int64_t most_threads = 1024;

/// The one axis that is reduced and has several places.
std::optional<int> reduced_axis(const KernelShapeInfo &info) {
    std::optional<int> found;
    for (int i = 0; i < static_cast<int>(info.space.size()); ++i) {
        if (info.is_reduced[i] && !(info.space[i] == Extent(1))) {
            if (found) {
                return std::nullopt;
            }
            found = i;
        }
    }
    return found;
}

/// Whether the stage runs over the space as it stands.
bool is_whole(const KernelShapeInfo &info, const StageRole &role) {
    bool same = role.axes.size() == info.space.size();
    for (int i = 0; same && i < static_cast<int>(role.axes.size()); ++i) {
        same = role.axes[i] == i;
    }
    return same;
}

/// Whether the stage has one value a column, made of what was reduced.
bool is_statistic(const StageRole &role, int axis) {
    return role.form == Form::pointwise && std::find(role.axes.begin(), role.axes.end(), axis) == role.axes.end();
}

/// Each stage that is computed shares the anchor's pass: it reduces columns, is made of such sums, or stores the columns' elements.
bool all_share(const ScheduleDraft &draft, int axis) {
    return std::all_of(draft.algorithm.stages.begin(), draft.algorithm.stages.end(), [&](const Stage &stage) {
        const StageRole &role = draft.info.role(stage.name());
        const bool reduces = role.form == Form::reduction && role.reduction_axes == std::vector<int>{axis};
        return role.is_inlined || reduces || is_statistic(role, axis) || (role.form == Form::pointwise && is_whole(draft.info, role));
    });
}

}  // namespace

bool schedule_held_columns(ScheduleDraft &draft) {
    const auto axis = reduced_axis(draft.info);
    const Stage *anchor = draft.algorithm.find_stage(draft.info.anchor);
    if (!axis || !anchor || draft.info.role(anchor->name()).form != Form::pointwise ||
        !is_whole(draft.info, draft.info.role(anchor->name())) || !all_share(draft, *axis) || *axis + 1 == anchor->rank() ||
        !anchor->extents[*axis].is_constant()) {
        return false;
    }
    const std::int64_t length = anchor->extents[*axis].value();
    const std::int64_t columns = length * most_columns <= most_threads * values_of_thread ? most_columns : fewest_columns;
    std::int64_t parts = 32 / columns;
    while (parts * columns < most_threads && length > parts * values_of_thread / 2) {
        parts *= 2;
    }
    parts = draft.choice.threads > 0 ? std::max<std::int64_t>(draft.choice.threads / columns, 32 / columns) : parts;
    if ((length + parts - 1) / parts > values_of_thread || length < parts) {
        return false;
    }
    StageSchedule s = draft.builder[anchor->name()];
    const std::string before = draft.fuse_arguments(*anchor, 0, *axis, "before"),
                      after = draft.fuse_arguments(*anchor, *axis + 1, anchor->rank(), "after");
    s.split(after, "block", "column", columns)
        .split(argument(*axis), "step", "part", parts)
        .unroll("step")
        .reorder("step", "column", "part", "block");
    if (before.empty()) {
        s.gpu_blocks("block");
    } else {
        s.gpu_blocks("block", before);  // blocks beside each other read the same lines of memory
    }
    s.gpu_threads("column", "part");
    draft.bound(s, parts * columns);
    for (const Stage &stage : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(stage.name());
        draft.done.insert(stage.name());
        if (role.is_inlined || &stage == anchor) {
            continue;
        }
        if (role.form == Form::reduction || is_statistic(role, *axis)) {
            draft.builder[stage.name()].compute_at(anchor->name(), "block");
        } else {
            draft.builder[stage.name()].compute_with(anchor->name(), "step");
        }
    }
    return true;
}

}  // namespace tilewright
