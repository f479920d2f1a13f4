#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {
namespace {

/// The dimension along which neighbours lie together in memory: the tensor's, also where a stage reads it element by element.
int fastest_dimension(const Algorithm &algorithm, const Read &read) {
    const auto rank = static_cast<int>(read.indices.size());
    if (const TensorInput *input = read.from_input ? algorithm.find_input(read.producer) : nullptr) {
        for (int i = rank - 1; i >= 0; --i) {
            if (input->meta.strides[i] == Extent(1) && !(input->meta.sizes[i] == Extent(1))) {
                return i;
            }
        }
        return rank - 1;
    }
    const Stage *producer = algorithm.find_stage(read.producer);
    if (!producer || producer->func.function().has_update_definition() || producer->func.function().has_extern_definition()) {
        return rank - 1;
    }
    for (const Read &inner : reads_of(*producer)) {
        bool in_order = static_cast<int>(inner.indices.size()) == rank;
        for (int i = 0; in_order && i < rank; ++i) {
            const auto *variable = inner.indices[i].as<Halide::Internal::Variable>();
            in_order = variable && variable->name == argument(i);
        }
        if (in_order) {
            return fastest_dimension(algorithm, inner);
        }
    }
    return rank - 1;
}

/// How threads and loads share a block's part of the terms.
struct ColumnShape {
    std::int64_t neighbours = 32;  ///< threads side by side along the columns
    std::int64_t shares = 8;       ///< of them, for terms side by side
    std::int64_t at_once = 8;      ///< loads of a thread under way
};

/// `row`: vectors of one row of columns, `all`: of all that is summed. Narrow accesses need more threads and loads for as many bytes under
/// way, and long runs of neighbours, as lines of memory begin anywhere. Rows shorter than a warp lie behind each other: their threads do
/// too.
ColumnShape column_shape(const Extent &row, const Extent &all, std::int64_t bytes) {
    constexpr std::int64_t warp = 32, narrow_bytes = 4, long_run = 128, few_narrow_threads = 256, narrow_threads = 512;
    ColumnShape shape;
    if (!row.is_constant() || !all.is_constant() || all.value() == 0) {
        return shape;
    }
    const bool is_narrow = bytes <= narrow_bytes;
    std::int64_t threads = warp * shape.shares;
    if (row.value() < warp) {
        shape.neighbours = row.value();
    } else if (is_narrow) {
        const std::int64_t runs = (all.value() + long_run - 1) / long_run;
        shape.neighbours = all.value() <= 2 * long_run ? all.value() : ((all.value() + runs - 1) / runs + warp - 1) / warp * warp;
        threads = runs > 2 ? few_narrow_threads : narrow_threads;
    }
    shape.shares = std::max<std::int64_t>(threads / shape.neighbours, 1);
    shape.at_once = bytes <= 2 ? 16 : 8;
    return shape;
}

/// Whether a float32 tensor takes the sums as they are, so that what they round shows.
bool is_stored_in_float(const Algorithm &algorithm, const Stage &stage) {
    return stage.func.types()[0] == Halide::Float(32) &&
           std::any_of(algorithm.outputs.begin(), algorithm.outputs.end(),
                       [](const TensorOutput &output) { return output.meta.dtype == DType::float32; });
}

/// Elements a vector where the columns are no multiple of it, and enough that few are summed twice; 1 where that is not so.
std::int64_t inward_width(const ScheduleDraft &draft, const Stage &stage) {
    constexpr std::int64_t fewest = 64;
    const bool one_axis = product(stage.extents) == stage.extents.back();
    if (!one_axis || !stage.extents.back().is_constant() || stage.extents.back().value() < fewest || draft.choice.align == 1) {
        return 1;
    }
    return draft.chosen_width(vector_width(draft.algorithm, stage, Extent(8)));
}

}  // namespace

bool keeps_innermost(const Algorithm &algorithm, const Stage &stage) {
    if (stage.rank() == 0 || stage.extents.back().bounds(algorithm.symbols).max < 2) {
        return false;
    }
    for (const Read &read : reads_of(stage)) {
        const bool varies = std::any_of(read.indices.begin(), read.indices.end(), [&](const Halide::Expr &e) {
            for (const auto &rvar : stage.func.function().update(0).schedule().rvars()) {
                if (mentions(e, rvar.var)) {
                    return true;
                }
            }
            return false;
        });
        if (!varies) {
            continue;
        }
        const int fastest = fastest_dimension(algorithm, read);
        const auto *variable = fastest < 0 ? nullptr : read.indices[fastest].as<Halide::Internal::Variable>();
        if (variable && variable->name == argument(stage.rank() - 1)) {
            return true;
        }
    }
    return false;
}

std::int64_t even_parts(std::int64_t most, const Extent &terms, std::int64_t unit) {
    for (std::int64_t parts = most; terms.is_constant() && parts > most / 2; --parts) {
        if (terms.value() % (parts * unit) == 0) {
            return parts;
        }
    }
    return most;
}

void schedule_columns(ScheduleDraft &draft, const Stage &stage) {
    const auto rvars = stage.func.function().update(0).schedule().rvars();
    StageSchedule s = draft.builder[stage.name()];
    const std::string columns = draft.fuse_arguments(stage, 0, stage.rank(), "columns");
    const std::int64_t whole = draft.chosen_width(vector_width(draft.algorithm, stage, stage.extents.back()));
    const std::int64_t width = std::max(whole, inward_width(draft, stage));
    std::string outer = columns;
    if (width > whole) {
        s.shift_inwards(columns, width);
    }
    if (width > 1) {
        s.split(columns, "vectors", "lane", width).vectorize("lane");
        outer = "vectors";
    }
    const std::int64_t bytes = 16 / vector_width(draft.algorithm, stage, Extent(16)) * width;
    const ColumnShape shape = column_shape(ceil_div(stage.extents.back(), width), ceil_div(product(stage.extents), width), bytes);
    s.split(outer, "block", "thread", shape.neighbours).gpu_blocks("block");
    const std::string terms = draft.fuse_variables(stage, static_cast<int>(rvars.size()));
    const Extent count = product(stage.reduction_extents);
    const std::int64_t wide_blocks =
        std::max<std::int64_t>(ceil_div(product(stage.extents), shape.neighbours * width).bounds(draft.algorithm.symbols).max, 1);
    const std::int64_t shares = draft.choice.threads >= shape.neighbours ? draft.choice.threads / shape.neighbours : shape.shares;
    const std::int64_t at_once = draft.choice.steps > 0 ? draft.choice.steps : shape.at_once;
    const std::int64_t most =
        std::clamp<std::int64_t>(4 * draft.facts.multiprocessors / wide_blocks, 1,
                                 std::max<std::int64_t>(count.bounds(draft.algorithm.symbols).max / (shares * at_once), 1));
    const std::int64_t parts = draft.choice.parts > 0 ? draft.choice.parts : even_parts(most, count, shares * at_once);
    s.split(terms, "step", "share", shares).gpu_threads("thread", "share").reduce_across("block");
    const std::int64_t threads = shape.neighbours * shares;
    if (draft.choice.min_blocks == 0) {
        s.launch_bounds(threads, 1);  // without it, the compiler keeps few loads under way for the sake of more threads
    } else {
        draft.bound(s, threads);
    }
    std::string serial = "step";
    const std::int64_t steps = count.is_constant() ? count.value() / (shares * parts) : 0;
    std::int64_t unrolled = at_once;
    while (unrolled > 4 && steps < 4 * unrolled) {  // few rounds are shared out unevenly
        unrolled /= 2;
    }
    if (steps >= 2 * unrolled && unrolled > 1) {
        s.split("step", "round", "at_once", unrolled).unroll("at_once");
        serial = "round";
        if (const auto fold = match_fold(stage.func);
            fold && fold->combiner == Combiner::sum && is_stored_in_float(draft.algorithm, stage)) {
            s.sum_apart();
        }
    }
    if (parts > 1) {
        s.split_blocks(serial, parts);
    }
    share_reduction(draft, stage, "block");
}

}  // namespace tilewright
