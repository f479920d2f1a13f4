#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>

#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {
namespace {

/// Windows and products of the stage's own space that nothing else reads.
std::vector<std::string> windows_on_the_way(const ScheduleDraft &draft, const Stage &stage) {
    std::vector<std::string> result;
    for (const Stage &other : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(other.name());
        const bool heavy = role.form == Form::window || role.form == Form::contraction;
        if (draft.choice.fuse_rows && heavy && !role.is_output && !draft.done.count(other.name()) && other.extents == stage.extents &&
            draft.depends(stage.name(), other.name())) {
            result.push_back(other.name());
        }
    }
    return result.size() == 1 ? result : std::vector<std::string>();
}

/// Other outputs of the same space are written in the same pass.
void share_pass(ScheduleDraft &draft, const Stage &stage) {
    if (!draft.choice.fuse_rows) {
        return;
    }
    for (const Stage &other : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(other.name());
        const bool flat = role.form == Form::pointwise || role.form == Form::gather;
        if (&other == &stage || !role.is_output || !flat || draft.done.count(other.name()) || !(other.extents == stage.extents) ||
            draft.depends(other.name(), stage.name())) {
            continue;
        }
        StageSchedule s = draft.builder[other.name()];
        draft.depends(stage.name(), other.name()) ? s.compute_at(stage.name(), "block") : s.compute_with(stage.name(), "block");
        draft.done.insert(other.name());
    }
}

/// Elements a vector where 16-bit elements, odd in number, would move one at a time, at half of the memory's speed: what lies in whole
/// vectors goes so, the last few by themselves. 1 where that is not the case, or tensors are not dense.
std::int64_t width_with_edge(const ScheduleDraft &draft, const Stage &stage) {
    constexpr std::int64_t fewest = 1 << 20, narrow = 8;
    const Extent count = product(stage.extents);
    const auto is_dense = [&](const TensorMeta &meta) {
        return !(meta.elements() == count) || (meta.is_contiguous() && mod(meta.offset, Extent(narrow)) == Extent(0));
    };
    const bool dense =
        std::all_of(draft.algorithm.inputs.begin(), draft.algorithm.inputs.end(), [&](const TensorInput &i) { return is_dense(i.meta); }) &&
        std::all_of(draft.algorithm.outputs.begin(), draft.algorithm.outputs.end(),
                    [&](const TensorOutput &o) { return is_dense(o.meta); });
    const bool wanted = draft.choice.vector == 0 && draft.choice.align != 1 && count.is_constant() && count.value() >= fewest;
    return wanted && dense && vector_width(draft.algorithm, stage, count) == 1 ? vector_width(draft.algorithm, stage, Extent(narrow)) : 1;
}

/// Whether each row needs the same values along its length, which begin at no aligned place of a vector that goes from row to row.
bool reads_for_each_column(const ScheduleDraft &draft, const Stage &stage, const Extent &length) {
    return std::any_of(draft.algorithm.inputs.begin(), draft.algorithm.inputs.end(), [&](const TensorInput &input) {
        return input.meta.elements() == length && !(input.meta.elements() == product(stage.extents));
    });
}

/// A thread keeps to a column and takes several rows: what all rows need is loaded once, and neighbouring threads load neighbours. Rows
/// shorter than a block lie behind each other, and so do their threads.
bool schedule_by_columns(ScheduleDraft &draft, const Stage &stage, std::vector<std::string> names) {
    constexpr std::int64_t shortest = 32, most_threads = 256, lines = 8;
    if (names.size() < 2 || draft.choice.vector > 0 || draft.choice.steps > 0) {
        return false;
    }
    const std::string column = names.back();
    const Extent length = stage.extents[std::stoi(column.substr(1))];
    const Extent all = product(stage.extents);
    if (!length.is_constant() || !all.is_constant() || length.value() < shortest || all.value() < 4 * lines * length.value() ||
        vector_width(draft.algorithm, stage, length) > 1 || !reads_for_each_column(draft, stage, length)) {
        return false;
    }
    names.pop_back();
    const std::string row = draft.fuse_names(stage, names, "rows");
    const std::int64_t wanted = draft.choice.threads > 0 ? draft.choice.threads : most_threads;
    const std::int64_t blocks = (length.value() + wanted - 1) / wanted;
    const std::int64_t threads = blocks == 1 ? length.value() : std::min(((length.value() + blocks - 1) / blocks + 31) / 32 * 32, wanted);
    const std::int64_t shares = std::max<std::int64_t>(wanted / threads, 1);
    StageSchedule s = draft.builder[stage.name()];
    s.split(column, "block", "thread", threads);
    if (shares > 1) {
        s.split(row, "lines", "piece", lines * shares).split("piece", "line", "share", shares);
        s.unroll("line").reorder("line", "thread", "share", "block", "lines").gpu_blocks("block", "lines").gpu_threads("thread", "share");
    } else {
        s.split(row, "lines", "line", lines)
            .unroll("line")
            .reorder("line", "thread", "block", "lines")
            .gpu_blocks("block", "lines")
            .gpu_threads("thread");
    }
    draft.bound(s, threads * shares);
    return true;
}

}  // namespace

void schedule_pointwise(ScheduleDraft &draft, const Stage &stage) {
    const std::vector<std::string> names = draft.memory_order(stage);
    if (names.empty()) {
        return;
    }
    if (names.size() >= 2 && is_stencil(draft.algorithm, stage)) {
        schedule_stencil(draft, stage, names);
        return;
    }
    if (schedule_transpose(draft, stage, names)) {
        return;
    }
    const std::vector<std::string> windows = windows_on_the_way(draft, stage);
    if (!windows.empty() && draft.info.role(windows[0]).form == Form::window &&
        schedule_taps(draft, stage, *draft.algorithm.find_stage(windows[0]), names)) {
        return;
    }
    if (windows.empty() && schedule_by_columns(draft, stage, names)) {
        share_pass(draft, stage);
        return;
    }
    const std::string flat = draft.fuse_names(stage, names, "flat");
    const std::size_t tensors = draft.algorithm.inputs.size() + draft.algorithm.outputs.size();
    const std::int64_t widest = tensors > 24 ? 2 : tensors > 12 ? 4 : 8;  // a vector of each tensor is held in registers
    const std::int64_t elements = product(stage.extents).bounds(draft.algorithm.symbols).max;
    const std::int64_t with_edge = width_with_edge(draft, stage);
    const std::int64_t possible =
        with_edge > 4 ? with_edge : draft.chosen_width(vector_width(draft.algorithm, stage, product(stage.extents)));
    const std::int64_t width = draft.choice.vector > 0 ? possible : std::min(widest, possible);
    StageSchedule s = draft.builder[stage.name()];
    std::string outer = flat;
    if (width > 1) {
        if (with_edge > 4) {
            s.align(flat, width);
        }
        s.split(flat, "vectors", "lane", width).vectorize("lane");
        outer = "vectors";
    }
    const std::int64_t threads = draft.choice.threads > 0 ? draft.choice.threads : tensors > 24 ? 128 : 256;
    // Two independent loads of each of a few tensors: enough under way, and time to compute meanwhile.
    const bool fills = elements / (2 * width * threads) >= 4 * draft.facts.multiprocessors;
    const std::int64_t steps = draft.choice.steps > 0 ? draft.choice.steps : tensors <= 5 && width > 1 && fills ? 2 : 1;
    if (steps > 1) {
        s.split(outer, "block", "piece", threads * steps).split("piece", "step", "thread", threads);
        s.unroll("step").gpu_blocks("block").gpu_threads("thread");
    } else {
        s.split(outer, "block", "thread", threads).gpu_blocks("block").gpu_threads("thread");
    }
    draft.bound(s, threads);
    for (const std::string &window : windows) {
        draft.builder[window].compute_at(stage.name(), "block");
        draft.done.insert(window);
    }
    share_pass(draft, stage);
}

}  // namespace tilewright
