// Default schedules: what a kernel's shape and extents suggest on a GPU, as directives that the search may edit.
#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/convolution_schedule.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/cuda_schedules/product_schedule.h"
#include "lowering/cuda_schedules/register_tiles.h"
#include "lowering/cuda_schedules/shape_schedules.h"
#include "lowering/cuda_schedules/streaming_schedule.h"
#include "lowering/nests/sort_plan.h"
#include "lowering/nests/stage_expansion.h"

namespace tilewright {
namespace {

bool is_root(const Stage &stage, const StageRole &role) {
    return role.is_output || stage.func.function().has_update_definition() || stage.func.function().has_extern_definition();
}

/// Rows by their axes, but columns in memory, as means over the pixels of channels-last images: several columns, or one pass over the rows
/// does better.
bool lies_in_columns(const ScheduleDraft &draft) {
    constexpr std::int64_t fewest = 16;
    return std::any_of(draft.algorithm.stages.begin(), draft.algorithm.stages.end(), [&](const Stage &stage) {
        return draft.info.role(stage.name()).form == Form::reduction && keeps_innermost(draft.algorithm, stage) &&
               stage.extents.back().bounds(draft.algorithm.symbols).max >= fewest;
    });
}

/// Sums and products, whose last bits depend on the order of their terms; others need no directive to go at once.
bool is_order_sensitive(const ScatterUpdate &update) { return update.combiner == Combiner::sum || update.combiner == Combiner::product; }

void schedule_alone(ScheduleDraft &draft, const Stage &stage, Form form) {
    switch (form) {
        case Form::pointwise:
        case Form::gather:
            schedule_pointwise(draft, stage);
            break;
        case Form::reduction:
            schedule_reduction(draft, stage);
            break;
        case Form::contraction:
        case Form::window:
            schedule_window(draft, stage);
            break;
        case Form::scan:
        case Form::scatter:
            if (draft.choice.atomic && is_order_sensitive(*match_scatter(stage.func))) {
                draft.builder[stage.name()].atomic();
            }
            break;
        case Form::sort: {
            StageSchedule schedule = draft.builder[stage.name()];
            schedule_sort(schedule, draft.algorithm, stage, draft.facts);
            break;
        }
    }
}

}  // namespace

Directives schedule_for(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice) {
    ScheduleDraft draft(kernel, facts, choice);
    const KernelShape shape = draft.info.shape;
    if (choice.fuse_rows && ((shape == KernelShape::rows && !lies_in_columns(draft)) || shape == KernelShape::mixed)) {
        schedule_rows(draft);
    } else if (choice.fuse_rows && shape == KernelShape::columns) {
        schedule_held_columns(draft);
    }
    if (choice.product >= 0) {
        schedule_products(draft);
    }
    // Scans before their readers, which may follow them.
    for (const Stage &stage : draft.algorithm.stages) {
        if (draft.info.role(stage.name()).form == Form::scan && !draft.done.count(stage.name())) {
            schedule_scan(draft, stage);
        }
    }
    // Readers first: they may take what they read along.
    for (auto stage = draft.algorithm.stages.rbegin(); stage != draft.algorithm.stages.rend(); ++stage) {
        const StageRole &role = draft.info.role(stage->name());
        if (!draft.done.count(stage->name()) && is_root(*stage, role)) {
            schedule_alone(draft, *stage, role.form);
        }
    }
    return std::move(draft.builder.directives);
}

bool can_lower(const Kernel &kernel, const Directives &directives, const GpuFacts &facts) {
    try {
        lower_to_tiles(kernel, directives, facts);
        return true;
    } catch (const UserError &) {
        return false;
    }
}

namespace {

/// The kernel's product or convolution on the matrix unit; empty where the unit does not take it.
Directives matrix_schedule(const Kernel &kernel, const GpuFacts &facts) {
    if (const auto product = match_matrix_product(kernel, facts)) {
        for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
            Directives directives = product_schedule(*product, tile);
            if (can_lower(kernel, directives, facts)) {
                return directives;
            }
        }
    }
    if (const auto convolution = match_convolution(kernel, facts)) {
        for (const ProductTile &tile : convolution_tiles(*convolution, kernel.algorithm.symbols, facts)) {
            Directives directives = convolution_schedule(*convolution, tile);
            if (can_lower(kernel, directives, facts)) {
                return directives;
            }
        }
    }
    return {};
}

/// Pairs of tensors that a term of a reduction chooses from: one for a product of two, more where an operand is a concatenation.
std::int64_t reads_of_term(const Algorithm &algorithm, const Stage &stage) {
    std::int64_t reads = 0;
    for (const Halide::Expr &term : stage.func.function().has_update_definition() ? terms_of(stage) : std::vector<Halide::Expr>()) {
        visit_reads(expand_stages(algorithm, term), [&](const Halide::Internal::Call *) { ++reads; });
    }
    return std::max<std::int64_t>(reads / 2, 1);
}

}  // namespace

bool is_multiplied_well(const Kernel &kernel, const GpuFacts &facts) {
    constexpr std::int64_t fewest_terms = 30'000'000;  // fewer take no longer without the unit than one more launch
    const auto is_small = [&](const Stage &stage) {
        const std::int64_t terms = (product(stage.extents) * product(stage.reduction_extents)).bounds(kernel.algorithm.symbols).max;
        return terms < fewest_terms && terms < fewest_terms / reads_of_term(kernel.algorithm, stage);
    };
    return std::all_of(kernel.algorithm.stages.begin(), kernel.algorithm.stages.end(), is_small) || !matrix_schedule(kernel, facts).empty();
}

/// Clusters are left to schedules written by hand: on an H200 products lost 15 to 40 % to them, more than a pass over the rows takes.
bool finishes_rows_well(const Kernel &kernel, const GpuFacts &facts) {
    constexpr double least_share = 0.7;  // of the multiprocessors that have a tile, over all turns
    const auto product = match_matrix_product(kernel, facts);
    if (!product || product->row_reductions.empty()) {
        return false;
    }
    const auto largest = [&](const Extent &e) { return std::max<std::int64_t>(e.bounds(kernel.algorithm.symbols).max, 1); };
    for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
        const std::int64_t blocks = largest(product->batch) * largest(ceil_div(product->m, tile.m));
        const std::int64_t turns = (blocks + facts.multiprocessors - 1) / facts.multiprocessors;
        const bool fills = static_cast<double>(blocks) >= least_share * static_cast<double>(turns * facts.multiprocessors);
        if (tile.row_blocks == 1 && fills && can_lower(kernel, product_schedule(*product, tile), facts)) {
            return true;
        }
    }
    return false;
}

Directives default_cuda_schedule(const Kernel &kernel, const GpuFacts &facts, bool deterministic) {
    const auto product = match_matrix_product(kernel, facts);
    if (product && streams_best(kernel, product->products.front(), facts)) {
        Directives directives = schedule_for(kernel, facts, {});
        if (can_lower(kernel, directives, facts)) {
            return directives;
        }
    }
    if (Directives directives = matrix_schedule(kernel, facts); !directives.empty()) {
        return directives;
    }
    if (const auto form = match_streaming(kernel.algorithm, facts)) {
        for (const StreamTile &tile : stream_tiles(*form, kernel.algorithm, facts)) {
            Directives directives = streaming_schedule(*form, kernel.algorithm, tile);
            if (can_lower(kernel, directives, facts)) {
                return directives;
            }
        }
    }
    Directives fused = schedule_for(kernel, facts, {.atomic = !deterministic});
    if (can_lower(kernel, fused, facts)) {
        return fused;
    }
    for (const ScheduleChoice &choice : {ScheduleChoice{.product = 0, .atomic = !deterministic, .fuse_rows = false},
                                         ScheduleChoice{.product = -1, .atomic = !deterministic}}) {
        const Directives other = schedule_for(kernel, facts, choice);
        if (other != fused && can_lower(kernel, other, facts)) {
            return other;
        }
    }
    // Rows that do not fit one nest: every stage with an update by itself.
    ScheduleChoice apart;
    apart.product = -1;
    apart.atomic = !deterministic;
    apart.fuse_rows = false;
    Directives separate = schedule_for(kernel, facts, apart);
    return can_lower(kernel, separate, facts) ? separate : Directives();
}

}  // namespace tilewright
