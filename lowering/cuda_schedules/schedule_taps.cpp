#include <algorithm>
#include <iterator>
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
std::optional<std::int64_t> distance(const Halide::Expr &index, const std::string &argument, const std::string &tap, int argument_steps,
                                     int tap_steps) {
    constexpr int middle = 8;
    const auto at = [&](int place, int number) {
        return Halide::Internal::simplify(
            substitute_variables(index, {{argument, Halide::Expr(middle + place)}, {tap, Halide::Expr(number)}}));
    };
    const Halide::Expr first = at(0, 0), second = at(argument_steps, tap_steps);
    const auto *a = first.as<Halide::Internal::IntImm>(), *b = second.as<Halide::Internal::IntImm>();
    return a && b ? std::optional(b->value - a->value) : std::nullopt;
}
/// Whether the next tap reads the next element, as it does where nothing is dilated.
bool moves_by_one(const Halide::Expr &index, const std::string &argument, const std::string &tap) {
    return distance(index, argument, tap, 0, 1) == 1;
}
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

/// Few taps: wide accesses, and many threads that wait for memory. Many: sums of several lines, whose loads and conversions they share.
/// Windows that share nothing: the widest accesses, as in a copy.
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

/// Few taps along the fastest axis: neighbouring threads, each with a pair of elements, read what lies together; caches hold what they
/// share.
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

/// Strips of elements a thread along the taps, which share what they load; the rest of the space over threads and blocks.
class StripSchedule {
public:
    StripSchedule(ScheduleDraft &draft, const Stage &stage, const Stage &window, const Taps &taps, const std::vector<std::string> &names)
        : draft_(draft),
          stage_(stage),
          window_(window),
          taps_(taps),
          names_(names),
          tap_(taps.order.back()),
          along_(taps.argument_of.at(tap_)),
          fast_(names.back()),
          tile_(thread_tile(draft, stage, taps, along_, fast_ == along_)),
          s_(draft.builder[stage.name()]),
          left_(tile_.threads) {}

    bool is_worth_it() const { return tile_.elements > 1 || tile_.lanes > 1; }

    void run() {
        split_elements();
        spread_threads();
        if (&stage_ == &window_) {  // sums of all elements are carried through the loops over taps
            const auto rvars = window_.func.function().update(0).schedule().rvars();
            std::transform(rvars.rbegin(), rvars.rend(), std::back_inserter(inside_), [](const auto &rvar) { return rvar.var; });
        }
        bind_loops();
        bound();
        place_window();
    }

private:
    /// What one thread computes: vectors, strips along the taps, lines across them.
    void split_elements() {
        if (tile_.lanes > 1 && fast_ != along_ && mod(stage_.extents[std::stoi(fast_.substr(1))], Extent(tile_.lanes)) == Extent(0)) {
            s_.split(fast_, "vectors", "lane", tile_.lanes).vectorize("lane");
            inside_.push_back("lane");
            fast_loop_ = "vectors";
            lanes_ = tile_.lanes;
        }
        if (tile_.elements > 1) {
            s_.split(along_, "strips", "element", tile_.elements).unroll("element");
            inside_.push_back("element");
            strips_ = "strips";
        }
        if (tile_.lines > 1) {
            lined_ = taps_.argument_of.at(taps_.order[taps_.order.size() - 2]);
            s_.split(lined_, "bands", "line", tile_.lines).unroll("line");
            inside_.push_back("line");
        }
    }

    /// Threads along the fastest axis, then along the taps, then along other axes with taps.
    void spread_threads() {
        constexpr std::int64_t most_bands = 8;
        if (fast_ != along_) {
            spread(fast_loop_, largest_extent(draft_, stage_, fast_) / lanes_, tile_.most_vectors);
        }
        spread(strips_, (largest_extent(draft_, stage_, along_) + tile_.elements - 1) / tile_.elements, tile_.most_strips);
        for (auto name = names_.rbegin(); name != names_.rend(); ++name) {
            if (*name == fast_ || *name == along_) {
                continue;
            }
            const bool has_taps =
                std::any_of(taps_.argument_of.begin(), taps_.argument_of.end(), [&](const auto &t) { return t.second == *name; });
            const std::string loop = *name == lined_ ? "bands" : *name;
            if (has_taps && left_ > 1) {
                spread(loop, largest_extent(draft_, stage_, *name) / (*name == lined_ ? tile_.lines : 1), most_bands);
            } else {
                rest_.push_back(loop);
            }
        }
    }

    void spread(const std::string &loop, std::int64_t extent, std::int64_t most) {
        const std::int64_t possible = std::min(left_, most);
        const std::int64_t n = loop == strips_ ? elements_a_thread(extent, (possible + 1) / 2, possible) : power_within(extent, possible);
        s_.split(loop, loop + "_block", loop + "_thread", n);
        thread_loops_.push_back(loop + "_thread");
        block_loops_.push_back(loop + "_block");
        left_ /= n;
    }

    void bind_loops() {
        Directive order{stage_.name(), "reorder", {}, {}, {}};
        for (const auto &group : {inside_, thread_loops_, block_loops_, rest_}) {
            order.arguments.insert(order.arguments.end(), group.begin(), group.end());
        }
        draft_.builder.directives.push_back(order);
        std::vector<std::string> outer(rest_.rbegin(), rest_.rend());
        outer.insert(outer.end(), block_loops_.rbegin(), block_loops_.rend());
        blocks_ = draft_.fuse_names(stage_, outer, "blocks");
        s_.gpu_blocks(blocks_);
        Directive bind{stage_.name(), "gpu_threads", {}, {}, {}};
        bind.arguments.assign(thread_loops_.begin(), thread_loops_.end());
        draft_.builder.directives.push_back(bind);
    }

    void bound() {
        if (tile_.lines > 1 && draft_.choice.min_blocks == 0) {
            constexpr std::int64_t resident_threads = 512;  // sums of several lines leave registers for no more
            s_.launch_bounds(tile_.threads / left_, resident_threads * left_ / tile_.threads);
        } else {
            draft_.bound(s_, tile_.threads / left_);
        }
    }

    void place_window() {
        if (&stage_ == &window_) {
            s_.unroll(tap_);
            return;
        }
        for (const std::string &weight : weights(draft_, window_, taps_)) {
            StageSchedule(draft_.builder.directives, weight).in(window_.name()).compute_at(stage_.name(), blocks_).store_in("shared");
        }
        draft_.builder[window_.name()].compute_at(stage_.name(), blocks_).unroll(tap_);
        draft_.done.insert(window_.name());
    }

    ScheduleDraft &draft_;
    const Stage &stage_, &window_;
    const Taps &taps_;
    const std::vector<std::string> &names_;
    const std::string tap_, along_, fast_;  ///< the innermost tap, the argument that it moves along, the fastest in memory
    const ThreadTile tile_;
    StageSchedule s_;
    std::int64_t left_;  ///< threads of a block that no loop has taken yet
    std::int64_t lanes_ = 1;
    std::string fast_loop_ = fast_, strips_ = along_, lined_;  ///< loops along them once elements are split off; the argument of the lines
    std::vector<std::string> inside_, thread_loops_, block_loops_, rest_;  ///< innermost first
    std::string blocks_;
};

}  // namespace

bool schedule_taps(ScheduleDraft &draft, const Stage &stage, const Stage &window, const std::vector<std::string> &names) {
    constexpr std::int64_t most_taps = 256, few_taps = 12;
    const auto taps = taps_of(window);
    if (!taps || taps->count > most_taps || names.size() < 2 || !(window.extents == stage.extents)) {
        return false;
    }
    if (taps->count <= few_taps && names.back() == taps->argument_of.at(taps->order.back())) {
        schedule_pairs(draft, stage, window, *taps, names);
        return true;
    }
    StripSchedule strips(draft, stage, window, *taps, names);
    if (!strips.is_worth_it()) {
        return false;
    }
    strips.run();
    return true;
}

}  // namespace tilewright
