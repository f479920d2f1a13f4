#include <algorithm>
#include <map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda/shape_schedules.h"

namespace tilewright {
namespace {

/// Taps of a window and the arguments along which they move.
struct Taps {
    std::map<std::string, std::string> argument_of;  ///< tap → argument; taps of one place are left out
    std::vector<std::string> order;                  ///< outermost first
    std::int64_t count = 1;
};

/// Empty where the window also sums over what no argument runs along, or reads no tensor at neighbouring places.
std::optional<Taps> taps_of(const Stage &window) {
    Taps taps;
    const auto rvars = window.func.function().update(0).schedule().rvars();
    for (std::size_t i = 0; i < rvars.size(); ++i) {
        if (window.reduction_extents[i] == Extent(1)) {
            continue;
        }
        if (!window.reduction_extents[i].is_constant()) {
            return std::nullopt;
        }
        taps.count *= window.reduction_extents[i].value();
        for (const Read &read : reads_of(window)) {
            for (const Halide::Expr &index : read.indices) {
                for (int a = 0; mentions(index, rvars[i].var) && a < window.rank(); ++a) {
                    if (mentions(index, argument(a))) {
                        taps.argument_of[rvars[i].var] = argument(a);
                    }
                }
            }
        }
        if (!taps.argument_of.count(rvars[i].var)) {
            return std::nullopt;
        }
        taps.order.push_back(rvars[i].var);
    }
    return taps.order.empty() ? std::nullopt : std::optional(taps);
}

std::int64_t largest_extent(const ScheduleDraft &draft, const Stage &stage, const std::string &name) {
    return stage.extents[std::stoi(name.substr(1))].bounds(draft.algorithm.symbols).max;
}

/// Elements along the taps that a thread keeps sums of: few are left over at the end of the line.
std::int64_t elements_a_thread(std::int64_t extent) {
    constexpr std::int64_t most = 14, least = 4;
    std::int64_t best = std::min(extent, least), waste = extent;
    for (std::int64_t n = std::min(most, extent); n >= least; --n) {
        const std::int64_t unused = (extent + n - 1) / n * n - extent;
        if (unused < waste) {
            best = n;
            waste = unused;
        }
    }
    return best;
}

/// Largest power of two that is no more than either.
std::int64_t power_within(std::int64_t extent, std::int64_t most) {
    std::int64_t n = 1;
    while (n * 2 <= most && n < extent) {
        n *= 2;
    }
    return n;
}

/// Small operands that do not move with the elements, as weights, are read by all threads of the block again and again.
std::vector<std::string> weights(const ScheduleDraft &draft, const Stage &window, const Taps &taps) {
    std::vector<std::string> result;
    for (const Read &read : reads_of(window)) {
        bool has_tap = false, moves = false;
        for (const Halide::Expr &index : read.indices) {
            for (const auto &[tap, along] : taps.argument_of) {
                has_tap = has_tap || mentions(index, tap);
                moves = moves || mentions(index, along);
            }
        }
        if (read.from_input && has_tap && !moves && draft.algorithm.find_input(read.producer)->meta.rank() > 0) {
            result.push_back(read.producer);
        }
    }
    return result;
}

}  // namespace

bool schedule_taps(ScheduleDraft &draft, const Stage &stage, const Stage &window, const std::vector<std::string> &names) {
    constexpr std::int64_t most_taps = 256, threads = 256, lanes = 2;
    const auto taps = taps_of(window);
    if (!taps || taps->count > most_taps || names.size() < 2 || !(window.extents == stage.extents)) {
        return false;
    }
    const std::string tap = taps->order.back(), along = taps->argument_of.at(tap), fast = names.back();
    const std::int64_t elements = elements_a_thread(largest_extent(draft, stage, along));
    if (elements < 2) {
        return false;
    }
    StageSchedule s = draft.builder[stage.name()];
    std::vector<std::string> inside, thread_loops, block_loops;
    std::int64_t left = threads;
    const auto spread = [&](const std::string &loop, std::int64_t extent, std::int64_t most) {
        const std::int64_t n = power_within(extent, std::min(left, most));
        s.split(loop, loop + "_block", loop + "_thread", n);
        thread_loops.push_back(loop + "_thread");
        block_loops.push_back(loop + "_block");
        left /= n;
    };
    std::string fast_loop = fast, strips = along;
    if (fast != along && mod(stage.extents[std::stoi(fast.substr(1))], Extent(lanes)) == Extent(0)) {
        s.split(fast, "vectors", "lane", lanes).vectorize("lane");
        inside.push_back("lane");
        fast_loop = "vectors";
    }
    s.split(along, "strips", "element", elements).unroll("element");
    inside.push_back("element");
    strips = "strips";
    if (fast != along) {
        spread(fast_loop, largest_extent(draft, stage, fast) / (inside.size() > 1 ? lanes : 1), 16);
    }
    spread(strips, (largest_extent(draft, stage, along) + elements - 1) / elements, 32);
    std::vector<std::string> rest;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
        if (*name == fast || *name == along) {
            continue;
        }
        const bool has_taps = std::any_of(taps->argument_of.begin(), taps->argument_of.end(), [&](const auto &t) { return t.second == *name; });
        if (has_taps && left > 1) {
            spread(*name, largest_extent(draft, stage, *name), 8);
        } else {
            rest.push_back(*name);
        }
    }
    if (&stage == &window) {  // sums of all elements are carried through the loops over taps
        const auto rvars = window.func.function().update(0).schedule().rvars();
        for (auto rvar = rvars.rbegin(); rvar != rvars.rend(); ++rvar) {
            inside.push_back(rvar->var);
        }
    }
    Directive order{stage.name(), "reorder", {}, {}, {}};
    for (const auto &group : {inside, thread_loops, block_loops, rest}) {
        order.arguments.insert(order.arguments.end(), group.begin(), group.end());
    }
    draft.builder.directives.push_back(order);
    std::vector<std::string> outer(rest.rbegin(), rest.rend());
    outer.insert(outer.end(), block_loops.rbegin(), block_loops.rend());
    const std::string blocks = draft.fuse_names(stage, outer, "blocks");
    s.gpu_blocks(blocks);
    Directive bind{stage.name(), "gpu_threads", {}, {}, {}};
    bind.arguments.assign(thread_loops.begin(), thread_loops.end());
    draft.builder.directives.push_back(bind);
    draft.bound(s, threads / left);
    if (&stage != &window) {
        for (const std::string &weight : weights(draft, window, *taps)) {
            StageSchedule(draft.builder.directives, weight).in(window.name()).compute_at(stage.name(), blocks).store_in("shared");
        }
        draft.builder[window.name()].compute_at(stage.name(), blocks).unroll(tap);
        draft.done.insert(window.name());
    } else {
        s.unroll(tap);
    }
    return true;
}

}  // namespace tilewright
