#include "lowering/nests/sort_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <string>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/stage_numbers.h"

namespace tilewright {
namespace {

using Sorters = SortPlan::Sorters;

constexpr int most_items = 16;  // registers: key, place and rank of each
constexpr int most_items_of_lane = 8;
constexpr std::int64_t most_first = 2048;
constexpr int resident_threads = 1024;  // with 64 registers each, or three quarters of them with 80

/// A row's largest extents, and what they need of a block.
struct RowFacts {
    RowFacts(const Algorithm &algorithm, const Stage &sort, const GpuFacts &facts)
        : longest(longest_row(algorithm, sort)),
          count(sort.extents.back().bounds(algorithm.symbols).max),
          count_known(sort.extents.back().is_constant()),
          key_bytes(sort.func.types()[0].bytes()),
          facts(facts) {}

    /// Keys, 16-bit places, and a count of each digit for each warp.
    bool fits_block(int threads) const {
        const std::int64_t held = std::int64_t{threads} * items(threads);
        return items(threads) <= most_items && held * (key_bytes + 2) + (threads / 32 + 1) * 1024 + 512 <= facts.shared_per_block;
    }
    int items(int threads) const { return static_cast<int>(std::min<std::int64_t>((longest + threads - 1) / threads, INT32_MAX)); }
    int items_of_lane() const {
        return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>((longest + 31) / 32, 1 << 30))));
    }
    bool can_preselect() const { return count_known && count >= 1 && count <= most_first && count < longest; }
    /// Threads with about `wanted` elements each.
    int threads_for(std::int64_t wanted, int fewest) const {
        return static_cast<int>(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((longest + wanted - 1) / wanted))), fewest, 1024));
    }

    std::int64_t longest, count;
    bool count_known;
    int key_bytes;
    const GpuFacts &facts;
};

struct Choice {
    Sorters sorters;
    bool preselects;
};
Choice default_choice(const RowFacts &row) {
    constexpr std::int64_t short_row = 32 * most_items_of_lane, long_row = 1024, fewer = 4;
    if (row.longest <= short_row) {
        return {Sorters::warp, false};
    }
    if (row.can_preselect() && row.longest > long_row && row.count * fewer <= row.longest) {
        return {Sorters::block, true};
    }
    return {row.fits_block(1024) ? Sorters::block : Sorters::grid, false};
}

int default_threads(const RowFacts &row, Sorters sorters, bool preselects) {
    switch (sorters) {
        case Sorters::warp:
            return 128;
        case Sorters::grid:
            return 256;
        case Sorters::block:
            return preselects ? row.threads_for(32, 128) : row.threads_for(most_items, 64);
    }
    return 0;
}

[[noreturn]] void refuse(const ScheduleFlag &flag, const std::string &cause, const std::string &repair) {
    schedule_error(flag.directive.location, flag.directive.to_string(), cause, repair);
}

void check_threads(const ScheduleFlag &bounds) {
    const std::int64_t threads = bounds.number(0);
    if (threads < 32 || !std::has_single_bit(static_cast<std::uint64_t>(threads))) {
        refuse(bounds, fmt::format("{} threads cannot share a sort", threads), "use 32, 64, 128, 256, 512 or 1024");
    }
}

void check_sorters(const ScheduleFlag &across, const Choice &choice, const RowFacts &row, int threads) {
    if (choice.sorters == Sorters::warp && row.items_of_lane() > most_items_of_lane) {
        refuse(across, fmt::format("a warp sorts rows of up to {} elements, and these have up to {}", 32 * most_items_of_lane, row.longest),
               "use sort_across(block)");
    }
    if (choice.sorters == Sorters::block && !choice.preselects && !row.fits_block(threads)) {
        refuse(
            across,
            fmt::format("a row of up to {} elements does not fit what {} threads and the block's shared memory hold", row.longest, threads),
            row.fits_block(1024) ? "give more threads by launch_bounds(1024, 1)" : "use sort_across(grid)");
    }
}

void check_preselect(const ScheduleFlag &flag, const Choice &choice, const RowFacts &row) {
    if (choice.sorters != Sorters::block) {
        refuse(flag, "the first of a row are selected by the threads of one block", "use sort_across(block)");
    }
    if (!row.can_preselect()) {
        refuse(flag,
               row.count == row.longest || !row.count_known
                   ? "the whole row is wanted, or how much of it is not known"
                   : fmt::format("the first {} of a row are wanted; a block has room for {}", row.count, most_first),
               "remove it");
    }
}

}  // namespace

Extent row_length(const Algorithm &algorithm, const Stage &stage) {
    const auto sort = match_sort(stage.func);
    internal_assert(sort.has_value(), "stage {} is no sort", stage.name());
    return sort->from_input ? algorithm.find_input(sort->input)->meta.sizes.back() : algorithm.find_stage(sort->input)->extents.back();
}

std::int64_t longest_row(const Algorithm &algorithm, const Stage &sort) {
    return std::clamp<std::int64_t>(row_length(algorithm, sort).bounds(algorithm.symbols).max, 1, std::numeric_limits<std::int32_t>::max());
}

void schedule_sort(StageSchedule stage, const Algorithm &algorithm, const Stage &sort, const GpuFacts &facts) {
    const SortPlan plan = sort_plan(algorithm, sort, nullptr, facts);
    stage.sort_across(plan.sorters == Sorters::warp ? "warp" : plan.sorters == Sorters::block ? "block" : "grid");
    if (plan.preselects) {
        stage.preselect();
    }
    stage.launch_bounds(plan.threads, plan.min_blocks);
}

SortPlan sort_plan(const Algorithm &algorithm, const Stage &sort, const ScheduledStage *scheduled, const GpuFacts &facts) {
    const RowFacts row(algorithm, sort, facts);
    const auto flag = [&](const char *name) { return scheduled ? scheduled->find_flag(name) : nullptr; };
    const ScheduleFlag *across = flag("sort_across"), *preselect = flag("preselect"), *bounds = flag("launch_bounds");
    Choice choice = default_choice(row);
    if (across) {
        const std::string &word = across->word(0);
        choice = {word == "warp" ? Sorters::warp : word == "block" ? Sorters::block : Sorters::grid, preselect != nullptr};
    }
    if (preselect) {
        choice.preselects = true;
        check_preselect(*preselect, choice, row);
    }
    SortPlan plan;
    plan.sorters = choice.sorters;
    plan.preselects = choice.preselects;
    plan.threads = default_threads(row, choice.sorters, choice.preselects);
    if (bounds) {
        check_threads(*bounds);
        plan.threads = static_cast<int>(bounds->number(0));
    }
    if (across) {
        check_sorters(*across, choice, row, plan.threads);
    } else if (bounds && choice.sorters == Sorters::block && !choice.preselects && !row.fits_block(plan.threads)) {
        check_sorters(*bounds, choice, row, plan.threads);
    }
    plan.items = choice.sorters == Sorters::warp    ? row.items_of_lane()
                 : choice.sorters == Sorters::block ? row.items(plan.threads)
                                                    : 4096 / plan.threads;
    const int resident = plan.items > most_items / 2 ? resident_threads * 3 / 4 : resident_threads;
    plan.min_blocks = bounds ? static_cast<int>(bounds->number(1)) : std::max(resident / plan.threads, 1);
    plan.key = Halide::UInt(8 * row.key_bytes);
    return plan;
}

void check_sort_directives(const Algorithm &algorithm, const ScheduledKernel &schedule) {
    static const std::set<std::string> of_sorts{"sort_across", "preselect"}, of_both{"launch_bounds", "engine"};
    const StageNumbers numbers(algorithm);
    for (const ScheduledStage &scheduled : schedule.stages) {
        const int stage = numbers[scheduled.name];
        const bool sorts = stage >= 0 && classify(algorithm.stages[stage]) == Form::sort;
        for (const ScheduleFlag &flag : scheduled.flags) {
            if (!sorts && of_sorts.count(flag.directive.name)) {
                refuse(flag, fmt::format("stage '{}' sorts nothing", scheduled.name), "put it on the stage that sorts");
            }
            if (sorts && !of_sorts.count(flag.directive.name) && !of_both.count(flag.directive.name)) {
                refuse(flag, fmt::format("it means nothing to a sort, as stage '{}' is", scheduled.name), "remove it");
            }
        }
        const bool has_loops = std::any_of(scheduled.axes.begin(), scheduled.axes.end(), [](const LoopAxis &axis) {
            return axis.origin != LoopAxis::Origin::root || axis.binding != Binding::serial;
        });
        if (sorts && (has_loops || scheduled.compute == ComputeLevel::at)) {
            schedule_error(scheduled.at_location, scheduled.name, "the loops of a sort are not scheduled, and it stands in none",
                           "use sort_across(warp|block|grid) and launch_bounds(threads, blocks) alone");
        }
    }
}

std::int64_t room_for_first(std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(2 * count, 2))));
}

bool keeps_row(const SortPlan &plan, std::int64_t longest, std::int64_t count, const GpuFacts &facts) {
    const std::int64_t others = 8192 + 1024 + plan.threads * plan.key.bytes();  // counts of digits, scratch, alignment, heads
    return longest <= facts.shared_per_block &&
           longest * plan.key.bytes() + room_for_first(count) * (plan.key.bytes() + 4) + others <= facts.shared_per_block;
}

}  // namespace tilewright
