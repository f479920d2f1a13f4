#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda_schedules/shape_schedules.h"
#include "lowering/passes/index_math.h"

namespace tilewright {
namespace {

/// Taps of a window and the arguments along which they move.
struct Taps {
    std::map<std::string, std::string> argument_of;  ///< tap → argument; taps of one place are left out
    std::vector<std::string> order;                  ///< outermost first
    std::set<std::string> neighbours;                ///< taps that move by one element
    bool overlap = false;                            ///< windows of neighbouring arguments share elements
    std::int64_t count = 1;
};

/// How far apart an index lies at two places of the argument and the tap, counted from the middle, away from borders.
std::optional<std::int64_t> distance(const Halide::Expr &index, const std::string &argument, const std::string &tap, int argument_steps, int tap_steps) {
    constexpr int middle = 8;
    const auto at = [&](int place, int number) {
        return Halide::Internal::simplify(substitute_variables(index, {{argument, Halide::Expr(middle + place)}, {tap, Halide::Expr(number)}}));
    };
    const Halide::Expr first = at(0, 0), second = at(argument_steps, tap_steps);
    const auto *a = first.as<Halide::Internal::IntImm>(), *b = second.as<Halide::Internal::IntImm>();
    return a && b ? std::optional(b->value - a->value) : std::nullopt;
}
/// Whether the next tap reads the next element, as it does where nothing is dilated.
bool moves_by_one(const Halide::Expr &index, const std::string &argument, const std::string &tap) { return distance(index, argument, tap, 0, 1) == 1; }
/// Whether the next window begins before this one has ended.
bool overlaps(const Halide::Expr &index, const std::string &argument, const std::string &tap, std::int64_t taps) {
    const auto step = distance(index, argument, tap, 1, 0), last = distance(index, argument, tap, 0, static_cast<int>(taps) - 1);
    return !step || !last || *step <= *last;
}

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
                        if (moves_by_one(index, argument(a), rvars[i].var)) {
                            taps.neighbours.insert(rvars[i].var);
                        }
                        taps.overlap = taps.overlap || overlaps(index, argument(a), rvars[i].var, window.reduction_extents[i].value());
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

/// How many elements a thread keeps along an axis: few are left over at the end of the line.
std::int64_t elements_a_thread(std::int64_t extent, std::int64_t least, std::int64_t most) {
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

/// What a thread computes.
struct ThreadTile {
    std::int64_t lanes = 1, elements = 1, lines = 1;
    std::int64_t threads = 256;
    std::int64_t most_vectors = 16, most_strips = 32;  ///< of a block's threads
};

/// Few taps: wide accesses, and many threads that wait for memory. Many: sums of several lines, whose loads and conversions they share. Windows
/// that share nothing: the widest accesses, as in a copy.
ThreadTile thread_tile(const ScheduleDraft &draft, const Stage &stage, const Taps &taps, const std::string &along, bool along_is_fast) {
    constexpr std::int64_t few_taps = 12, light_bytes = 8, widest_bytes = 16;
    ThreadTile tile;
    if (!taps.overlap && !along_is_fast) {
        tile.lanes = std::max<std::int64_t>(widest_bytes / std::max<std::int64_t>(stage.func.types()[0].bytes(), 1), 1);
        return tile;
    }
    if (taps.count <= few_taps && !along_is_fast) {
        tile.lanes = std::max<std::int64_t>(light_bytes / std::max<std::int64_t>(stage.func.types()[0].bytes(), 1), 2);
        tile.elements = 2;
        return tile;
    }
    tile.elements = elements_a_thread(largest_extent(draft, stage, along), 4, 14);
    const std::size_t axes = taps.order.size();
    if (axes > 1 && taps.neighbours.count(taps.order[axes - 2]) && taps.argument_of.at(taps.order[axes - 2]) != along) {
        const std::int64_t extent = largest_extent(draft, stage, taps.argument_of.at(taps.order[axes - 2]));
        tile.lines = extent >= 16 || extent % 4 == 0 ? 4 : extent % 2 == 0 ? 2 : 1;
    }
    tile.lanes = tile.lines > 1 ? 1 : 2;
    tile.threads = tile.lines > 1 ? 128 : 256;
    tile.most_vectors = tile.lines > 1 ? 32 : 16;
    return tile;
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

/// Few taps along the fastest axis: neighbouring threads, each with a pair of elements, read what lies together; caches hold what they share.
void schedule_pairs(ScheduleDraft &draft, const Stage &stage, const Stage &window, const Taps &taps, std::vector<std::string> names) {
    constexpr std::int64_t lanes = 2, threads = 256;
    StageSchedule s = draft.builder[stage.name()];
    if (mod(stage.extents[std::stoi(names.back().substr(1))], Extent(lanes)) == Extent(0)) {
        s.split(names.back(), "pairs", "lane", lanes).vectorize("lane");
        names.back() = "pairs";
    }
    s.split(draft.fuse_names(stage, names, "flat"), "block", "thread", threads).gpu_blocks("block").gpu_threads("thread");
    draft.bound(s, threads);
    StageSchedule w = draft.builder[window.name()];
    if (&stage != &window) {
        w.compute_at(stage.name(), "block");
    }
    for (const std::string &tap : taps.order) {
        w.unroll(tap);
    }
    draft.done.insert(window.name());
}

}  // namespace

bool schedule_taps(ScheduleDraft &draft, const Stage &stage, const Stage &window, const std::vector<std::string> &names) {
    constexpr std::int64_t most_taps = 256, few_taps = 12;
    const auto taps = taps_of(window);
    if (!taps || taps->count > most_taps || names.size() < 2 || !(window.extents == stage.extents)) {
        return false;
    }
    const std::string tap = taps->order.back(), along = taps->argument_of.at(tap), fast = names.back();
    if (taps->count <= few_taps && fast == along) {
        schedule_pairs(draft, stage, window, *taps, names);
        return true;
    }
    const ThreadTile tile = thread_tile(draft, stage, *taps, along, fast == along);
    if (tile.elements < 2 && tile.lanes < 2) {
        return false;
    }
    StageSchedule s = draft.builder[stage.name()];
    std::vector<std::string> inside, thread_loops, block_loops;
    std::int64_t left = tile.threads;
    std::string strips = along;
    const auto spread = [&](const std::string &loop, std::int64_t extent, std::int64_t most) {
        const std::int64_t possible = std::min(left, most), n = loop == strips ? elements_a_thread(extent, (possible + 1) / 2, possible) : power_within(extent, possible);
        s.split(loop, loop + "_block", loop + "_thread", n);
        thread_loops.push_back(loop + "_thread");
        block_loops.push_back(loop + "_block");
        left /= n;
    };
    std::string fast_loop = fast;
    const bool has_lanes = tile.lanes > 1 && fast != along && mod(stage.extents[std::stoi(fast.substr(1))], Extent(tile.lanes)) == Extent(0);
    if (has_lanes) {
        s.split(fast, "vectors", "lane", tile.lanes).vectorize("lane");
        inside.push_back("lane");
        fast_loop = "vectors";
    }
    if (tile.elements > 1) {
        s.split(along, "strips", "element", tile.elements).unroll("element");
        inside.push_back("element");
        strips = "strips";
    }
    std::string lined, bands;
    if (tile.lines > 1) {
        lined = taps->argument_of.at(taps->order[taps->order.size() - 2]);
        bands = "bands";
        s.split(lined, bands, "line", tile.lines).unroll("line");
        inside.push_back("line");
    }
    if (fast != along) {
        spread(fast_loop, largest_extent(draft, stage, fast) / (has_lanes ? tile.lanes : 1), tile.most_vectors);
    }
    spread(strips, (largest_extent(draft, stage, along) + tile.elements - 1) / tile.elements, tile.most_strips);
    std::vector<std::string> rest;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
        if (*name == fast || *name == along) {
            continue;
        }
        const bool has_taps = std::any_of(taps->argument_of.begin(), taps->argument_of.end(), [&](const auto &t) { return t.second == *name; });
        const std::string loop = *name == lined ? bands : *name;
        if (has_taps && left > 1) {
            spread(loop, largest_extent(draft, stage, *name) / (*name == lined ? tile.lines : 1), 8);
        } else {
            rest.push_back(loop);
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
    if (tile.lines > 1 && draft.choice.min_blocks == 0) {
        constexpr std::int64_t resident_threads = 512;  // sums of several lines leave registers for no more
        s.launch_bounds(tile.threads / left, resident_threads * left / tile.threads);
    } else {
        draft.bound(s, tile.threads / left);
    }
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
