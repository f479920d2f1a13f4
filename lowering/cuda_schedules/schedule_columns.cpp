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

}  // namespace

bool keeps_innermost(const Algorithm &algorithm, const Stage &stage) {
    if (stage.rank() == 0 || stage.extents.back().bounds(algorithm.symbols).max < 16) {
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
    const std::int64_t width = draft.chosen_width(vector_width(draft.algorithm, stage, stage.extents.back()));
    std::string outer = columns;
    if (width > 1) {
        s.split(columns, "vectors", "lane", width).vectorize("lane");
        outer = "vectors";
    }
    s.split(outer, "block", "thread", 32).gpu_blocks("block");
    const std::string terms = draft.fuse_variables(stage, static_cast<int>(rvars.size()));
    const Extent count = product(stage.reduction_extents);
    const std::int64_t wide_blocks =
        std::max<std::int64_t>(ceil_div(product(stage.extents), 32 * width).bounds(draft.algorithm.symbols).max, 1);
    const std::int64_t shares = draft.choice.threads >= 32 ? draft.choice.threads / 32 : 8;
    const std::int64_t at_once = draft.choice.steps > 0 ? draft.choice.steps : 8;
    const std::int64_t most = std::clamp<std::int64_t>(4 * draft.facts.multiprocessors / wide_blocks, 1,
                                                       std::max<std::int64_t>(count.bounds(draft.algorithm.symbols).max / (shares * at_once), 1));
    const std::int64_t parts = draft.choice.parts > 0 ? draft.choice.parts : even_parts(most, count, shares * at_once);
    s.split(terms, "step", "share", shares).gpu_threads("thread", "share").reduce_across("block");
    if (draft.choice.min_blocks == 0) {
        s.launch_bounds(32 * shares, 1);  // without it, the compiler keeps few loads under way for the sake of more threads
    } else {
        draft.bound(s, 32 * shares);
    }
    std::string serial = "step";
    if (count.is_constant() && count.value() / (shares * parts) >= 4 * at_once && at_once > 1) {
        s.split("step", "round", "at_once", at_once).unroll("at_once");
        serial = "round";
    }
    if (parts > 1) {
        s.split_blocks(serial, parts);
    }
}

}  // namespace tilewright
