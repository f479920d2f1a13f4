#include "lowering/cpu_schedules/fold_schedule.h"

#include <algorithm>

#include "dsl/algorithm/combiner.h"
#include "lowering/cpu_schedules/product_schedule.h"
#include "lowering/cpu_schedules/vector_axis.h"

namespace tilewright {

namespace {

/// Beside the stage where that has no loops of its own, else inside its innermost loop.
void place_partial(CpuScheduleDraft &draft, const KeptStage &kept, StageSchedule &partial) {
    const int depth = kept.is_output ? 0 : draft.depth_of(kept);
    const int own = kept.stage->rank();
    if (own > 0 && (depth == 0 || own > depth)) {
        const std::string innermost = arguments_of(kept).back();
        const bool is_chunked = std::any_of(draft.builder.directives.begin(), draft.builder.directives.end(), [&](const Directive &d) {
            return d.stage == kept.stage->name() && d.name == "split" && d.arguments[0] == DirectiveArgument(innermost);
        });
        partial.compute_at(kept.stage->name(), is_chunked ? innermost + "n" : innermost);
    } else if (depth > 0) {
        partial.compute_at(draft.flow.anchor->name(), draft.anchor_loops[depth - 1]);
    } else {
        partial.compute_root();
    }
}

/// Lanes along the reduced axis, combined at the end of each row.
void fold_rows(CpuScheduleDraft &draft, const KeptStage &kept, const VectorAxis &axis) {
    const auto fold = match_fold(kept.stage->func);
    if (!fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last) {
        draft.spread(kept, "");
        return;
    }
    const std::optional<std::int64_t> extent = axis.extent.constant();
    const bool is_long = !extent || *extent >= 256;
    const bool is_simple = fold->combiner == Combiner::sum || fold->combiner == Combiner::maximum || fold->combiner == Combiner::minimum;
    const std::int64_t lanes = is_long && is_simple && axis.lanes == 16 ? 32 : axis.lanes;
    draft.spread(kept, "");
    draft.at(*kept.stage).split(axis.name, axis.name + "o", axis.name + "i", lanes).rfactor(axis.name + "i", "lane");
    StageSchedule partial = draft.builder[kept.stage->name() + "_partial"];
    partial.vectorize("lane");
    place_partial(draft, kept, partial);
}

/// Lanes along an axis of the value; each lane folds its own column.
void fold_columns(CpuScheduleDraft &draft, const KeptStage &kept, const VectorAxis &axis) {
    const std::string outer = axis.name + "o", wide = axis.name + "w", unrolled = axis.name + "u", lane = axis.name + "i";
    const std::optional<std::int64_t> extent = axis.extent.constant();
    const bool is_long = !extent || *extent >= 4 * axis.lanes;
    std::vector<DirectiveArgument> order = {lane};
    if (is_long) {
        draft.at(*kept.stage)
            .split(axis.name, outer, wide, 4 * axis.lanes)
            .split(wide, unrolled, lane, axis.lanes)
            .vectorize(lane)
            .unroll(unrolled);
        order.emplace_back(unrolled);
    } else {
        draft.at(*kept.stage).split(axis.name, outer, lane, axis.lanes).vectorize(lane);
    }
    const std::vector<std::string> reduced = reductions_of(kept);
    for (auto r = reduced.rbegin(); r != reduced.rend(); ++r) {
        order.emplace_back(*r);
    }
    order.emplace_back(outer);
    const std::vector<std::string> names = arguments_of(kept);
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
        if (*name != axis.name) {
            order.emplace_back(*name);
        }
    }
    draft.builder.directives.push_back({kept.stage->name(), "reorder", order, {}, {}});
    if (kept.stage == draft.flow.anchor) {
        draft.usable_depth = static_cast<int>(std::find(names.begin(), names.end(), axis.name) - names.begin());
    }
    draft.spread(kept, axis.name);
}

}  // namespace

void schedule_fold(CpuScheduleDraft &draft, const KeptStage &kept) {
    const VectorAxis axis = choose_vector_axis(draft.kernel, kept, true, kept.is_output ? 0 : draft.depth_of(kept));
    if (axis.name.empty()) {
        draft.spread(kept, "");
    } else if (axis.is_reduction) {
        fold_rows(draft, kept, axis);
    } else {
        fold_columns(draft, kept, axis);
    }
}

void schedule_scan(CpuScheduleDraft &draft, const KeptStage &kept) {
    const auto fold = match_fold(kept.stage->func);
    const int own = fold ? fold->scan_axis : -1;
    const std::vector<std::string> names = arguments_of(kept);
    const int last = kept.stage->rank() - 1;
    const int lanes = own == last || own < 0 ? 1 : lanes_for(kept.stage->extents[last], widest_bits(kept));
    if (lanes > 1) {
        draft.at(*kept.stage).split(names[last], names[last] + "o", names[last] + "i", lanes).vectorize(names[last] + "i");
        draft.builder.directives.push_back({kept.stage->name(), "reorder", {names[last] + "i", reductions_of(kept).back()}, {}, {}});
    }
    if (own != 0 && !(lanes > 1 && last == 0)) {
        draft.spread(kept, lanes > 1 ? names[last] : "");
    }
}

}  // namespace tilewright
