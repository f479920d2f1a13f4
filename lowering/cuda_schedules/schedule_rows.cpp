#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>
#include <map>
#include <optional>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {
namespace {

constexpr std::int64_t long_part = 64;          // elements of a thread
constexpr std::int64_t few_values = 64;         // of a thread's part of the row, over all that is held at once

/// The kernel's space as rows and what lies along them.
struct RowSpace {
    int rows = 0;                    ///< axes that are not reduced
    std::vector<std::string> names;  ///< the anchor's loop along each axis: rows first, in order, then what is reduced
    Extent count = 1, length = 1;    ///< of the rows
};

/// Axes along the row follow one another as the anchor's value lies in memory.
void order_by_memory(const Algorithm &algorithm, const Stage &anchor, RowSpace &space) {
    for (const TensorOutput &output : algorithm.outputs) {
        const std::vector<Extent> &strides = output.meta.strides;
        if (output.stage != anchor.name() || !std::all_of(strides.begin(), strides.end(), [](const Extent &e) { return e.is_constant(); })) {
            continue;
        }
        std::map<std::string, std::int64_t> stride;
        for (std::size_t i = 0; i < strides.size(); ++i) {
            stride[argument(static_cast<int>(i))] = strides[i].value();
        }
        const auto along = space.names.begin() + space.rows;
        if (std::all_of(along, space.names.end(), [&](const std::string &name) { return stride.count(name) > 0; })) {
            std::stable_sort(along, space.names.end(), [&](const std::string &a, const std::string &b) { return stride[a] > stride[b]; });
        }
        return;
    }
}

/// The innermost axis must be a reduced one, and the anchor must run along every axis that has several places.
std::optional<RowSpace> row_space(const Algorithm &algorithm, const KernelShapeInfo &info, const Stage &anchor) {
    const int space = static_cast<int>(info.space.size());
    std::vector<std::string> names(space);
    const StageRole &role = info.role(anchor.name());
    for (int i = 0; i < static_cast<int>(role.axes.size()); ++i) {
        if (role.axes[i] >= 0) {
            names[role.axes[i]] = argument(i);
        }
    }
    if (anchor.func.function().has_update_definition()) {
        const auto rvars = anchor.func.function().update(0).schedule().rvars();
        for (int i = 0; i < static_cast<int>(role.reduction_axes.size()); ++i) {
            if (role.reduction_axes[i] >= 0) {
                names[role.reduction_axes[i]] = rvars[i].var;
            }
        }
    }
    bool ends_reduced = false;
    for (int i = 0; i < space; ++i) {
        if (!names[i].empty()) {
            ends_reduced = info.is_reduced[i];
        } else if (!(info.space[i] == Extent(1))) {
            return std::nullopt;
        }
    }
    if (!ends_reduced) {
        return std::nullopt;
    }
    RowSpace result;
    for (const bool reduced : {false, true}) {
        for (int i = 0; i < space; ++i) {
            if (info.is_reduced[i] == reduced && !names[i].empty()) {
                result.names.push_back(names[i]);
                result.rows += !reduced;
                (reduced ? result.length : result.count) = (reduced ? result.length : result.count) * info.space[i];
            }
        }
    }
    order_by_memory(algorithm, anchor, result);
    return result;
}

/// The stages that take the pass with the anchor.
struct RowMembers {
    std::vector<const Stage *> stages;
    int kept = 0;          ///< values of the row that are held at once
    bool columns = false;  ///< sums over the rows share the pass
};

/// A reduction over rows alone that keeps the row's whole length.
bool is_column_sum(const KernelShapeInfo &info, const StageRole &role, int rows) {
    const bool keeps = static_cast<int>(role.axes.size()) == static_cast<int>(info.space.size()) - rows;
    return keeps && std::all_of(role.reduction_axes.begin(), role.reduction_axes.end(), [&](int a) { return a >= 0 && !info.is_reduced[a]; });
}

/// Each argument runs along the space, or has but one place.
bool has_place(const Stage &stage, const StageRole &role) {
    for (std::size_t i = 0; i < role.axes.size(); ++i) {
        if (role.axes[i] < 0 && !(stage.extents[i] == Extent(1))) {
            return false;
        }
    }
    return true;
}

RowMembers row_members(const ScheduleDraft &draft, const Stage &anchor, int rows) {
    RowMembers members;
    std::vector<std::string> sums;
    for (const Stage &stage : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(stage.name());
        if (&stage == &anchor || role.is_inlined) {
            continue;
        }
        const bool reduces_rows =
            std::any_of(role.reduction_axes.begin(), role.reduction_axes.end(), [&](int a) { return a >= 0 && !draft.info.is_reduced[a]; });
        const bool placed = has_place(stage, role);
        const bool reads_sum =
            std::any_of(sums.begin(), sums.end(), [&](const std::string &sum) { return draft.depends(stage.name(), sum); });
        const bool fits = role.form == Form::pointwise || role.form == Form::gather || role.form == Form::reduction;
        if (!placed || !fits || reads_sum || (reduces_rows && !is_column_sum(draft.info, role, rows))) {
            continue;
        }
        members.stages.push_back(&stage);
        members.columns = members.columns || reduces_rows;
        if (reduces_rows) {
            sums.push_back(stage.name());
        }
        members.kept += reduces_rows || (role.form != Form::reduction && role.axes.size() == draft.info.space.size());
    }
    return members;
}

/// Row values of a 16-bit type that several of the pass's stages would compute again, each from several stages: half a register an element
/// holds one.
class RoundedValues {
public:
    RoundedValues(const ScheduleDraft &draft, const Stage &anchor, const RowMembers &members) : draft_(draft) {
        for (const Stage *stage : members.stages) {
            placed_.insert(stage->name());
        }
        placed_.insert(anchor.name());
    }

    std::vector<const Stage *> worth_keeping() {
        std::map<std::string, std::set<std::string>> readers;
        for (const std::string &name : placed_) {
            std::set<std::string> seen;
            collect(name, seen);
            for (const std::string &read : seen) {
                readers[read].insert(name);
            }
        }
        constexpr std::size_t least_work = 4, most_values = 4;
        std::vector<const Stage *> kept;
        for (const Stage &stage : draft_.algorithm.stages) {
            const StageRole &role = draft_.info.role(stage.name());
            const std::vector<Halide::Type> types = stage.func.types();
            const bool is_rounded = types.size() == 1 && types[0].is_float() && types[0].bits() == 16;
            if (is_rounded && role.is_inlined && !role.is_output && role.axes.size() == draft_.info.space.size() && readers[stage.name()].size() > 1 &&
                kept.size() < most_values) {
                std::set<std::string> below;
                collect(stage.name(), below);
                if (below.size() >= least_work) {
                    kept.push_back(&stage);
                    placed_.insert(stage.name());
                }
            }
        }
        return kept;
    }

private:
    /// The inlined stages that `name` is computed from.
    void collect(const std::string &name, std::set<std::string> &seen) const {
        for (const Read &read : reads_of(*draft_.algorithm.find_stage(name))) {
            if (!read.from_input && !placed_.count(read.producer) && draft_.info.role(read.producer).is_inlined && seen.insert(read.producer).second) {
                collect(read.producer, seen);
            }
        }
    }

    const ScheduleDraft &draft_;
    std::set<std::string> placed_;
};

/// Fuses loops [from, to) of `names` and gives the last loop's name.
std::string fuse_loops(StageSchedule &s, const std::vector<std::string> &names, int from, int to, const std::string &name) {
    std::string fused = from < to ? names[from] : "";
    for (int i = from + 1; i < to; ++i) {
        const std::string next = i + 1 == to ? name : name + std::to_string(i);
        s.fuse(fused, names[i], next);
        fused = next;
    }
    return fused;
}

/// Elements a vector where a long row begins anywhere in memory and its vectors are better moved to where it is aligned; 1 where not.
std::int64_t aligned_width(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space, const RowMembers &members) {
    constexpr std::int64_t shortest = 2048;
    const bool one_axis = static_cast<int>(space.names.size()) == space.rows + 1 && space.rows > 0;
    if (!one_axis || members.columns || draft.choice.vector > 0 || draft.choice.align == 1 || !space.length.is_constant() || space.length.value() < shortest) {
        return 1;
    }
    const std::int64_t widest = vector_width(draft.algorithm, anchor, Extent(8));
    return widest > vector_width(draft.algorithm, anchor, space.length) ? widest : 1;
}

/// Tensors that are read row by row.
std::int64_t row_tensors(const ScheduleDraft &draft, const RowSpace &space) {
    const auto is_of_rows = [&](const TensorInput &input) { return !(product(input.meta.sizes) == space.length) && input.meta.rank() > 1; };
    return std::max<std::int64_t>(std::count_if(draft.algorithm.inputs.begin(), draft.algorithm.inputs.end(), is_of_rows), 1);
}

bool combines_tuples(const ScheduleDraft &draft, const Stage &anchor, const RowMembers &members) {
    const auto is_tuple = [&](const Stage &s) { return s.func.outputs() > 1 && draft.info.role(s.name()).form == Form::reduction; };
    return is_tuple(anchor) || std::any_of(members.stages.begin(), members.stages.end(), [&](const Stage *s) { return is_tuple(*s); });
}

/// `aligned`: elements a vector, where alignment is seen to; 1 where the length decides.
RowLayout choose_layout(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space, const RowMembers &members, std::int64_t aligned) {
    const Extent length = space.length + (aligned - 1);
    const int kept = members.kept + 1;
    const bool columns = members.columns;
    // Sums over the rows stay in registers beside the row: fewer elements a thread, and no cluster.
    constexpr std::int64_t warps = 32;  // of a multiprocessor that is busy enough
    const std::int64_t vector = aligned > 1 ? aligned : draft.chosen_width(vector_width(draft.algorithm, anchor, length));
    // Combining several values at once costs more than terms do: few threads, each with a long part.
    constexpr std::int64_t longest_of_warp = 1024;  // whose columns' sums a warp's registers hold
    const bool of_warps = columns && space.length.is_constant() && space.length.value() <= longest_of_warp && vector > 1;
    const std::int64_t loads = of_warps ? longest_of_warp / vector / 32 : columns ? 2 : combines_tuples(draft, anchor, members) ? std::max<std::int64_t>(long_part / vector, 4) : 4;
    const RowLimits limits{kept, loads, columns ? 1 : draft.facts.largest_cluster, warps * draft.facts.multiprocessors,
                           space.count.bounds(draft.algorithm.symbols).min, row_tensors(draft, space)};
    const RowLayout layout = row_layout(length, vector, limits, draft.algorithm.symbols);
    const RowChoice choice{draft.choice.threads, draft.choice.rows_per_block, columns ? 1 : draft.choice.cluster};
    const bool chosen = choice.threads > 0 || choice.rows_per_block > 0 || draft.choice.cluster > 0;
    return chosen && length.is_constant() ? row_layout_of(length, layout, choice) : layout;
}

bool writes_rows(const ScheduleDraft &draft, const RowSpace &space) {
    return std::any_of(draft.algorithm.outputs.begin(), draft.algorithm.outputs.end(), [&](const TensorOutput &output) {
        return product(draft.algorithm.find_stage(output.stage)->extents) == space.count * space.length;
    });
}

/// Where several blocks would share a row, one block may hold it packed. A row that is written too, whose vectors begin where it does, had
/// better leave registers for more threads: twice as many.
std::optional<RowLayout> packed_layout(const ScheduleDraft &draft, const RowSpace &space, const RowLayout &layout, std::int64_t aligned) {
    const bool chosen = draft.choice.threads > 0 || draft.choice.vector > 0 || draft.choice.cluster > 0;
    if (chosen || layout.blocks == 1 || !space.length.is_constant() || space.rows == 0) {
        return std::nullopt;
    }
    constexpr std::int64_t access_bytes = 16, most_written_bytes = 160;  // of a thread with 64 registers
    const bool writes = aligned == 1 && writes_rows(draft, space);
    const std::int64_t vector_bytes = access_bytes * row_tensors(draft, space);
    const RowLayout packed = writes ? packed_row_layout(space.length.value(), layout.vector, vector_bytes, {512}, most_written_bytes)
                                    : packed_row_layout(space.length.value() + aligned - 1, layout.vector, vector_bytes);
    return packed.steps > 0 ? std::optional(packed) : std::nullopt;
}

/// A few rows that do not stay on the chip: each reduction by itself, over all multiprocessors.
bool wants_many_blocks(const ScheduleDraft &draft, const RowSpace &space, const RowLayout &layout) {
    return !layout.in_registers && space.length.is_constant() && space.count.bounds(draft.algorithm.symbols).max < draft.facts.multiprocessors;
}

/// A row over the threads of a block, in vectors; true where its steps are loops of several loads at once.
bool split_row(StageSchedule &s, std::string column, const RowLayout &layout) {
    if (layout.vector > 1) {
        s.split(column, "vectors", "lane", layout.vector).vectorize("lane");
        column = "vectors";
    }
    if (layout.blocks > 1) {
        s.split(column, "part", "own", layout.steps * layout.threads);
        column = "own";
    }
    s.split(column, "step", "thread", layout.threads);
    if (layout.in_registers) {
        s.unroll("step");
    } else if (layout.steps >= 8) {
        // Several loads under way at once; the registers they take leave one row to a multiprocessor, so that rows stay in L2.
        s.split("step", "round", "at_once", 4).unroll("at_once");
        return true;
    }
    return false;
}

/// Rows of each of about so many blocks; equally many where a number close to that allows it, for a block that checks its rows is slower.
std::int64_t even_share(const Extent &count, std::int64_t blocks, const SymbolRanges &symbols) {
    const std::int64_t rows = count.bounds(symbols).max, least = std::max<std::int64_t>((rows + blocks - 1) / blocks, 1);
    for (std::int64_t each = least; count.is_constant() && each <= least + least / 2; ++each) {
        if (rows % each == 0) {
            return each;
        }
    }
    return least;
}

/// Rows over blocks; gives the loop at which everything else of the row is computed.
std::string place_rows(const ScheduleDraft &draft, StageSchedule &s, const std::string &row, const RowLayout &layout, const Extent &count,
                       bool columns) {
    if ((columns || draft.choice.parts > 0) && !row.empty()) {
        // Blocks stay and take row after row: each leaves one partial sum of its columns.
        const std::int64_t resident =
            std::max<std::int64_t>(512 / (layout.threads * layout.rows_per_block), 1) * draft.facts.multiprocessors;
        const std::int64_t blocks = std::max<std::int64_t>((draft.choice.parts > 0 ? draft.choice.parts : resident) / layout.blocks, 1);
        if (layout.rows_per_block > 1) {
            // A row a warp; neighbouring rows go to different blocks, so that all have equally many to within one.
            s.split(row, "turn", "rows", blocks).split("turn", "row_i", "row_in_block", layout.rows_per_block).reorder("row_in_block", "row_i", "rows");
            s.gpu_blocks("rows").gpu_threads("thread", "row_in_block");
            return "row_in_block";
        }
        const std::int64_t each = even_share(count, blocks, draft.algorithm.symbols);
        s.split(row, "rows", "row_i", each);
        layout.blocks > 1 ? s.gpu_blocks("part", "rows").cluster(layout.blocks, 1) : s.gpu_blocks("rows");
        s.gpu_threads("thread");
        return "row_i";
    }
    if (layout.rows_per_block > 1 && !row.empty()) {
        s.split(row, "rows", "row_in_block", layout.rows_per_block).gpu_blocks("rows").gpu_threads("thread", "row_in_block");
        return "row_in_block";
    }
    if (layout.blocks > 1) {
        row.empty() ? s.gpu_blocks("part") : s.gpu_blocks("part", row);
        s.cluster(layout.blocks, 1);
    } else if (!row.empty()) {
        s.gpu_blocks(row);
    }
    s.gpu_threads("thread");
    return row.empty() && layout.blocks > 1 ? "part" : row;
}

}  // namespace

void schedule_rows(ScheduleDraft &draft) {
    const Stage *anchor = draft.algorithm.find_stage(draft.info.anchor);
    const std::optional<RowSpace> space = anchor ? row_space(draft.algorithm, draft.info, *anchor) : std::nullopt;
    if (!space) {
        return;
    }
    const RowMembers members = row_members(draft, *anchor, space->rows);
    const std::int64_t aligned = aligned_width(draft, *anchor, *space, members);
    RowLayout layout = choose_layout(draft, *anchor, *space, members, aligned);
    const std::optional<RowLayout> packed = packed_layout(draft, *space, layout, aligned);
    if (packed) {
        layout = *packed;
    }
    if (wants_many_blocks(draft, *space, layout)) {
        return;
    }
    StageSchedule s = draft.builder[anchor->name()];
    draft.put_in_order(*anchor, space->names);
    const std::string outer = fuse_loops(s, space->names, 0, space->rows, "row");
    const std::string column = fuse_loops(s, space->names, space->rows, static_cast<int>(space->names.size()), "column");
    if (aligned > 1 && layout.blocks > 1 && draft.choice.align == 0) {
        // Measured at 50257 columns: the edges of each part cost more than its vectors save.
        layout = choose_layout(draft, *anchor, *space, members, 1);
    } else if (aligned > 1) {
        s.align(column, aligned);
    }
    const bool in_rounds = split_row(s, column, layout);
    const std::string row = place_rows(draft, s, outer, layout, space->count, members.columns);
    std::vector<const Stage *> rounded;  // values of a row that are held beside it
    if (layout.in_registers && !row.empty()) {
        rounded = RoundedValues(draft, *anchor, members).worth_keeping();
    }
    const bool holds_several = layout.in_registers && layout.blocks == 1 && !members.columns && members.kept + static_cast<int>(rounded.size()) >= 3;
    if (anchor->func.function().has_update_definition()) {
        s.reduce_across(layout.blocks > 1 ? "cluster" : layout.threads <= 32 ? "warp" : "block");
    }
    if (packed && draft.choice.min_blocks == 0) {
        const bool writes = aligned == 1 && writes_rows(draft, *space);
        s.launch_bounds(layout.threads, (writes ? 1024 : 512) / layout.threads);
    } else if (layout.blocks > 1 && draft.choice.min_blocks == 0) {
        // As many blocks as hold their parts of the rows: others load while some wait for their cluster.
        constexpr std::int64_t most_wide = 56;  // values that the compiler may keep as floats between passes
        const std::int64_t others = layout.vector <= 4 && layout.steps > 8 ? 16 : layout.steps * layout.vector > most_wide ? 32 : 44;
        const std::int64_t registers = others + layout.steps * 4 * row_tensors(draft, *space);
        s.launch_bounds(layout.threads, std::max<std::int64_t>((64 << 10) / (registers * layout.threads), 1));
    } else if (holds_several && draft.choice.min_blocks == 0) {
        // Values that spill are fewer than what a third of the loads under way would cost.
        constexpr std::int64_t resident_threads = 768;
        const std::int64_t threads = layout.threads * layout.rows_per_block;
        s.launch_bounds(threads, std::max<std::int64_t>(resident_threads / threads, 1));
    } else if (draft.choice.min_blocks == 0 && layout.threads <= 32 && aligned == 1 && layout.steps * layout.vector * (members.kept + 1) <= few_values) {
        // Registers enough for loads ahead of an exchange; left alone, the compiler makes them one after another behind it.
        constexpr std::int64_t resident_threads = 512;
        const std::int64_t threads = layout.threads * layout.rows_per_block;
        s.launch_bounds(threads, std::max<std::int64_t>(resident_threads / threads, 1));
    } else {
        draft.bound(s, layout.threads * layout.rows_per_block);
    }
    const std::string place = !row.empty() ? row : in_rounds ? "round" : "step";
    for (const Stage *stage : rounded) {
        draft.builder[stage->name()].compute_at(anchor->name(), place).store_in("register");
    }
    const std::int64_t most_kept = draft.choice.kept > 0 ? draft.choice.kept : 32;  // values of one stage in a thread's registers
    for (const Stage *stage : members.stages) {
        const StageRole &role = draft.info.role(stage->name());
        const bool whole_row = !stage->func.function().has_update_definition() && role.axes.size() == draft.info.space.size();
        if (layout.in_registers && layout.steps * layout.vector > most_kept && whole_row && !role.is_output) {
            continue;
        }
        StageSchedule m = draft.builder[stage->name()];
        draft.depends(anchor->name(), stage->name()) ? m.compute_at(anchor->name(), place) : m.compute_with(anchor->name(), place);
        if (!stage->func.function().has_update_definition() && !draft.info.role(stage->name()).is_output) {
            m.store_in("register");
        }
        draft.done.insert(stage->name());
    }
    draft.done.insert(anchor->name());
}

}  // namespace tilewright
