#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>
#include <optional>

#include "lowering/cuda_schedules/row_layout.h"
#include "lowering/cuda_schedules/row_members.h"
#include "lowering/cuda_schedules/rows_ahead.h"

namespace tilewright {
namespace {

constexpr std::int64_t long_part = 64;    // elements of a thread
constexpr std::int64_t few_values = 64;   // of a thread's part of the row, over all that is held at once
constexpr std::int64_t few_aligned = 32;  // likewise of one tensor, where rows begin anywhere

/// A pass over rows in the making.
struct RowPass {
    RowSpace space;
    RowMembers members;
    std::int64_t aligned = 1;                 ///< elements a vector, where alignment is seen to; 1 where the length decides
    bool is_packed = false;                   ///< a long row lies in one block's registers as it lies in memory
    std::optional<RowsAhead> ahead = {};      ///< rows that come by way of shared memory
    std::vector<const Stage *> rounded = {};  ///< values of a row that are held beside it
};

/// Elements a vector where a long row begins anywhere in memory and its vectors are better moved to where it is aligned; 1 where not.
std::int64_t aligned_width(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space, const RowMembers &members) {
    const bool one_axis = static_cast<int>(space.names.size()) == space.rows + 1 && space.rows > 0;
    constexpr std::int64_t shortest = 2048, shortest_with_columns = 512;
    return one_axis ? aligned_vector(draft, anchor, space.length, members.columns ? shortest_with_columns : shortest) : 1;
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
RowLayout choose_layout(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space, const RowMembers &members,
                        std::int64_t aligned) {
    const Extent length = space.length + (aligned - 1);
    const int kept = members.kept + 1;
    const bool columns = members.columns;
    // Sums over the rows stay in registers beside the row: fewer elements a thread, and no cluster.
    constexpr std::int64_t warps = 32;  // of a multiprocessor that is busy enough
    const std::int64_t vector = aligned > 1 ? aligned : draft.chosen_width(vector_width(draft.algorithm, anchor, length));
    // Combining several values at once costs more than terms do: few threads, each with a long part.
    constexpr std::int64_t longest_of_warp = 1024;  // whose columns' sums a warp's registers hold
    const bool of_warps = columns && space.length.is_constant() && space.length.value() <= longest_of_warp && vector > 1;
    const std::int64_t loads = of_warps                                  ? longest_of_warp / vector / 32
                               : columns                                 ? 2
                               : combines_tuples(draft, anchor, members) ? std::max<std::int64_t>(long_part / vector, 4)
                                                                         : 4;
    const RowLimits limits{kept,
                           loads,
                           columns ? 1 : draft.facts.largest_cluster,
                           warps * draft.facts.multiprocessors,
                           space.count.bounds(draft.algorithm.symbols).min,
                           row_tensors(draft, space)};
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
    return !layout.in_registers && space.length.is_constant() &&
           space.count.bounds(draft.algorithm.symbols).max < draft.facts.multiprocessors;
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

/// Threads of a multiprocessor whose registers hold the sums of their columns; a block that is a little longer than half of them for the
/// sake of edges is not left alone.
std::int64_t threads_with_columns(const RowLayout &layout) {
    constexpr std::int64_t resident = 512, most_of_two = 640;
    return 2 * layout.threads <= most_of_two ? std::max(resident, 2 * layout.threads) : resident;
}

/// Rows that come by way of shared memory, if they had better.
std::optional<RowsAhead> choose_ahead(const ScheduleDraft &draft, const RowLayout &layout, const RowPass &pass) {
    // Measured: large blocks that stay anyway, for the sums of their columns, gain an eighth; others lose more by staying than they gain.
    constexpr std::int64_t large_block = 256;
    const bool stays = pass.members.columns && layout.threads >= large_block;
    const std::int64_t wanted = draft.choice.ahead != 0 ? draft.choice.ahead : stays ? 2 : 0;
    const bool in_shared = draft.choice.in_shared && !pass.members.columns && draft.choice.parts == 0;
    return wanted > 0 || in_shared ? rows_ahead(draft, pass.space.length, layout, std::max<std::int64_t>(wanted, 0),
                                                pass.members.columns ? threads_with_columns(layout) : 1024)
                                   : std::nullopt;
}

/// Rows over blocks; gives the loop at which everything else of the row is computed.
std::string place_rows(const ScheduleDraft &draft, StageSchedule &s, const std::string &row, const RowLayout &layout, const RowPass &pass) {
    const bool stays = pass.ahead && pass.ahead->stages > 1;
    if ((pass.members.columns || stays || draft.choice.parts > 0) && !row.empty()) {
        // Blocks stay and take row after row: each leaves one partial sum of its columns.
        const std::int64_t residents =
            stays ? pass.ahead->residents
                  : std::max<std::int64_t>(threads_with_columns(layout) / (layout.threads * layout.rows_per_block), 1);
        const std::int64_t resident = residents * draft.facts.multiprocessors;
        std::int64_t blocks = std::max<std::int64_t>((draft.choice.parts > 0 ? draft.choice.parts : resident) / layout.blocks, 1);
        const bool moves = pass.members.columns && pass.aligned > 1;
        if (moves) {  // a thread's columns stay the same where it takes rows that begin alike
            blocks = std::max(blocks / pass.aligned, std::int64_t{1}) * pass.aligned;
        }
        if (layout.rows_per_block > 1) {
            // A row a warp; neighbouring rows go to different blocks, so that all have equally many to within one.
            s.split(row, "turn", "rows", blocks)
                .split("turn", "row_i", "row_in_block", layout.rows_per_block)
                .reorder("row_in_block", "row_i", "rows");
            s.gpu_blocks("rows").gpu_threads("thread", "row_in_block");
            return "row_in_block";
        }
        if (moves) {
            s.split(row, "row_i", "rows", blocks).reorder("row_i", "rows");
            s.gpu_blocks("rows").gpu_threads("thread");
            return "row_i";
        }
        const std::int64_t each = even_share(pass.space.count, blocks, draft.algorithm.symbols);
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

/// As many blocks a multiprocessor as its registers are wanted for.
void bound_registers(ScheduleDraft &draft, StageSchedule &s, const RowLayout &layout, const RowPass &pass) {
    const std::int64_t threads = layout.threads * layout.rows_per_block;
    const auto with_resident = [&](std::int64_t resident_threads) {
        s.launch_bounds(threads, std::max<std::int64_t>(resident_threads / threads, 1));
    };
    if (draft.choice.min_blocks != 0) {
        draft.bound(s, threads);
    } else if (pass.ahead) {
        s.launch_bounds(threads, pass.ahead->residents);
    } else if (pass.is_packed) {
        s.launch_bounds(layout.threads, (pass.aligned == 1 && writes_rows(draft, pass.space) ? 1024 : 512) / layout.threads);
    } else if (layout.blocks > 1) {
        // As many blocks as hold their parts of the rows: others load while some wait for their cluster.
        constexpr std::int64_t most_wide = 56;  // values that the compiler may keep as floats between passes
        const std::int64_t others = layout.vector <= 4 && layout.steps > 8 ? 16 : layout.steps * layout.vector > most_wide ? 32 : 44;
        const std::int64_t registers = others + layout.steps * 4 * row_tensors(draft, pass.space);
        s.launch_bounds(layout.threads, std::max<std::int64_t>((64 << 10) / (registers * layout.threads), 1));
    } else if (layout.in_registers && !pass.members.columns && pass.members.kept + static_cast<int>(pass.rounded.size()) >= 3) {
        // Values that spill are fewer than what a third of the loads under way would cost.
        with_resident(768);
    } else if (pass.aligned > 1 && layout.in_registers && layout.steps * layout.vector <= few_aligned &&
               row_tensors(draft, pass.space) == 1 && !pass.members.columns && writes_rows(draft, pass.space)) {
        // Edges take registers that are worth less than one more block.
        with_resident(1250);
    } else if (layout.threads <= 32 && pass.aligned == 1 && layout.steps * layout.vector * (pass.members.kept + 1) <= few_values) {
        // Registers enough for loads ahead of an exchange; left alone, the compiler makes them one after another behind it.
        with_resident(512);
    } else {
        draft.bound(s, threads);
    }
}

/// Computes what takes the pass with the anchor at `place`; what it keeps of a row stays in registers.
void place_members(ScheduleDraft &draft, const Stage &anchor, const RowLayout &layout, const RowPass &pass, const std::string &place) {
    for (const Stage *stage : pass.rounded) {
        draft.builder[stage->name()].compute_at(anchor.name(), place).store_in("register");
    }
    const std::int64_t most_kept = draft.choice.kept > 0 ? draft.choice.kept : 32;  // values of one stage in a thread's registers
    for (const Stage *stage : pass.members.stages) {
        const StageRole &role = draft.info.role(stage->name());
        const bool has_update = stage->func.function().has_update_definition();
        const bool whole_row = !has_update && role.axes.size() == draft.info.space.size();
        if (layout.in_registers && layout.steps * layout.vector > most_kept && whole_row && !role.is_output) {
            continue;
        }
        StageSchedule m = draft.builder[stage->name()];
        draft.depends(anchor.name(), stage->name()) ? m.compute_at(anchor.name(), place) : m.compute_with(anchor.name(), place);
        if (!has_update && !role.is_output) {
            m.store_in("register");
        }
        draft.done.insert(stage->name());
    }
    draft.done.insert(anchor.name());
}

}  // namespace

void schedule_rows(ScheduleDraft &draft) {
    const Stage *anchor = draft.algorithm.find_stage(draft.info.anchor);
    const std::optional<RowSpace> space = anchor ? row_space(draft.algorithm, draft.info, *anchor) : std::nullopt;
    if (!space) {
        return;
    }
    RowPass pass{*space, row_members(draft, *anchor, *space)};
    pass.aligned = aligned_width(draft, *anchor, pass.space, pass.members);
    RowLayout layout = choose_layout(draft, *anchor, pass.space, pass.members, pass.aligned);
    if (const std::optional<RowLayout> packed = packed_layout(draft, pass.space, layout, pass.aligned)) {
        layout = *packed;
        pass.is_packed = true;
    }
    if (wants_many_blocks(draft, pass.space, layout)) {
        return;
    }
    StageSchedule s = draft.builder[anchor->name()];
    draft.put_in_order(*anchor, pass.space.names);
    const auto rows_end = pass.space.names.begin() + pass.space.rows;
    const std::string outer = draft.fuse_names(*anchor, {pass.space.names.begin(), rows_end}, "row");
    const std::string column = draft.fuse_names(*anchor, {rows_end, pass.space.names.end()}, "column");
    if (pass.aligned > 1 && layout.blocks > 1 && draft.choice.align == 0) {
        // Measured at 50257 columns: the edges of each part cost more than its vectors save.
        layout = choose_layout(draft, *anchor, pass.space, pass.members, 1);
    } else if (pass.aligned > 1) {
        s.align(column, pass.aligned);
    }
    const bool in_rounds = split_row(s, column, layout);
    pass.ahead = outer.empty() ? std::nullopt : choose_ahead(draft, layout, pass);
    const std::string row = place_rows(draft, s, outer, layout, pass);
    if (pass.ahead) {
        s.pipeline(row, pass.ahead->stages);
    }
    if (layout.in_registers && !row.empty()) {
        pass.rounded = rounded_values(draft, *anchor, pass.members);
    }
    if (anchor->func.function().has_update_definition()) {
        s.reduce_across(layout.blocks > 1 ? "cluster" : layout.threads <= 32 ? "warp" : "block");
    }
    bound_registers(draft, s, layout, pass);
    place_members(draft, *anchor, layout, pass, !row.empty() ? row : in_rounds ? "round" : "step");
}

}  // namespace tilewright
