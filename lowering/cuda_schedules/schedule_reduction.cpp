#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {

void share_reduction(ScheduleDraft &draft, const Stage &stage, const std::string &place) {
    std::vector<std::string> together{stage.name()};
    for (const Stage &other : draft.algorithm.stages) {
        const auto fold = match_fold(other.func);
        const bool ordered = !fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last;
        if (!draft.choice.fuse_rows || &other == &stage || draft.info.role(other.name()).form != Form::reduction || ordered ||
            draft.done.count(other.name()) || !(other.extents == stage.extents) || !(other.reduction_extents == stage.reduction_extents) ||
            keeps_innermost(draft.algorithm, other) != keeps_innermost(draft.algorithm, stage)) {
            continue;
        }
        if (std::any_of(together.begin(), together.end(),
                        [&](const std::string &name) { return draft.depends(other.name(), name) || draft.depends(name, other.name()); })) {
            continue;
        }
        together.push_back(other.name());
        draft.builder[other.name()].compute_with(stage.name(), place);
        draft.done.insert(other.name());
    }
    draft.done.insert(stage.name());
}

void schedule_reduction(ScheduleDraft &draft, const Stage &stage) {
    const auto fold = match_fold(stage.func);
    const bool ordered = fold && (fold->combiner == Combiner::general || fold->combiner == Combiner::last);
    const Extent terms = product(stage.reduction_extents);
    const std::int64_t smallest = terms.bounds(draft.algorithm.symbols).min;
    const int variables = static_cast<int>(stage.reduction_extents.size());
    if (ordered || smallest < 128) {
        schedule_window(draft, stage);
        return;
    }
    StageSchedule s = draft.builder[stage.name()];
    if (keeps_innermost(draft.algorithm, stage)) {
        schedule_columns(draft, stage);
        return;
    }
    const std::string rows = draft.fuse_arguments(stage, 0, stage.rank(), "rows");
    if (!rows.empty()) {
        s.gpu_blocks(rows);
    }
    std::string inner = draft.fuse_variables(stage, variables);
    const std::int64_t width = draft.chosen_width(vector_width(draft.algorithm, stage, terms));
    if (width > 1) {
        s.split(inner, "vectors", "lane", width).vectorize("lane");
        inner = "vectors";
    }
    const std::int64_t threads = draft.choice.threads > 0 ? draft.choice.threads : 256;
    s.split(inner, "step", "thread", threads).gpu_threads("thread").reduce_across("block");
    const std::int64_t blocks = std::max<std::int64_t>(product(stage.extents).bounds(draft.algorithm.symbols).max, 1);
    const std::int64_t steps = std::max<std::int64_t>(smallest / (threads * width), 1);
    const std::int64_t at_once = draft.choice.steps > 0 ? draft.choice.steps : 4;
    const std::int64_t most = std::clamp<std::int64_t>(4 * draft.facts.multiprocessors / blocks, 1, std::max<std::int64_t>(steps / 8, 1));
    const std::int64_t parts = draft.choice.parts > 0 ? draft.choice.parts : even_parts(most, terms, width * threads * at_once);
    std::string serial = "step";
    if (steps / parts >= 2 * at_once && terms.is_constant() && at_once > 1) {
        s.split("step", "round", "at_once", at_once).unroll("at_once");
        s.reorder("at_once", "thread", "round");
        serial = "round";
    }
    if (parts > 1) {
        s.split_blocks(serial, parts);
    }
    share_reduction(draft, stage, rows.empty() ? serial : rows);
}

}  // namespace tilewright
