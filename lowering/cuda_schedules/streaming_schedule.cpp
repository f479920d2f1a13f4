#include "lowering/cuda_schedules/streaming_schedule.h"

#include <algorithm>
#include <tuple>

#include "dsl/algorithm/expression.h"
#include "dsl/schedule/builder.h"

namespace tilewright {

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

/// The stored stage that runs over the second product's columns.
const Stage &anchor_of(const StreamingForm &form, const Algorithm &algorithm) {
    const Stage &second = algorithm.stages[form.second];
    const auto found = std::find_if(form.outputs.begin(), form.outputs.end(), [&](int output) {
        const Stage &stage = algorithm.stages[output];
        return stage.rank() == second.rank() && stage.extents[form.column] == second.extents[form.column];
    });
    return algorithm.stages[*found];
}

/// What the tile asks of a multiprocessor, and the time it takes, in cycles or so.
class TileCost {
public:
    TileCost(const StreamingForm &form, const Algorithm &algorithm, const GpuFacts &facts) : form_(form), facts_(facts) {
        const Stage &second = algorithm.stages[form.second];
        columns_ = round_up(second.extents[form.column].value(), 32);
        depth_ = round_up(form.depth_extent.value(), 64);
        rows_ = second.extents[form.row].bounds(algorithm.symbols).max;
        keys_ = form.streamed_extent.bounds(algorithm.symbols).max;
        Extent planes = 1;
        for (int i = 0; i < second.rank(); ++i) {
            planes = i == form.row || i == form.column ? planes : planes * second.extents[i];
        }
        if (form.group > 0) {
            planes = planes * floor_div(second.extents[form.row], form.group);
            rows_ = form.group;
        }
        planes_ = std::max<std::int64_t>(planes.bounds(algorithm.symbols).max, 1);
        count_reads(form.score);
        for (const Halide::Expr &mask : form.masks) {
            count_reads(mask);
        }
    }

    /// Whether places themselves are masked, so that about half of the keys is visited.
    bool leaves_out_keys() const {
        return std::any_of(form_.masks.begin(), form_.masks.end(), [](const Halide::Expr &mask) {
            bool reads = false;
            visit_reads(mask, [&](const Halide::Internal::Call *) { reads = true; });
            return !reads;
        });
    }
    /// Products that take longer than the exponentials between them.
    bool has_wide_heads() const { return depth_ + columns_ > 128; }
    std::int64_t planes() const { return planes_; }
    std::int64_t keys() const { return keys_; }
    std::int64_t pieces(const StreamTile &tile) const { return planes_ * ((rows_ + tile.warpgroups * 64 - 1) / (tile.warpgroups * 64)); }

    std::int64_t rows_of_part(const StreamTile &tile) const { return form_.group > 0 ? form_.group : tile.warpgroups * 64; }

    bool fits(const StreamTile &tile) const {
        constexpr int bookkeeping = 30;  // addresses, loop counters, row statistics
        const std::int64_t threads = (tile.warpgroups + 1) * 128, rows = tile.warpgroups * 64;
        const std::int64_t step_bytes =
            tile.keys * (depth_ + round_up(columns_, 64)) * form_.type.bytes() + rows * tile.keys * score_bytes_;
        const std::int64_t bytes = rows * depth_ * form_.type.bytes() + tile.stages * step_bytes + 1024;
        const std::int64_t ahead = held_bytes_ > 0 ? tile.keys / 2 * held_bytes_ / 4 + 14 : 0;  // what scores read, and where
        const std::int64_t at_launch = std::min<std::int64_t>(facts_.registers_per_multiprocessor / (threads * tile.blocks) / 8 * 8, 248);
        const std::int64_t producer = tile.persistent && leaves_out_keys() ? 40 : 24;
        const std::int64_t registers =
            std::min<std::int64_t>((at_launch * (tile.warpgroups + 1) - producer) / tile.warpgroups / 8 * 8, 240);
        if (tile.cluster && rows_of_part(tile) * columns_ * 4 > tile.stages * tile.keys * depth_ * form_.type.bytes()) {
            return false;  // what a block has summed lies where its keys lay
        }
        constexpr int operands = 28;  // of one instruction of the matrix unit, beside its sums
        return std::max<std::int64_t>(tile.keys, columns_) / 2 + operands <= at_launch && bytes <= facts_.shared_per_block &&
               tile.blocks * (bytes + facts_.shared_reserved_per_block) <= facts_.shared_per_multiprocessor &&
               columns_ / 2 + tile.keys / 2 + tile.keys / 4 + ahead + bookkeeping <= registers && (tile.stages <= 2 || tile.keys <= keys_);
    }

    /// Multiplies of all rows, what a step and a piece cost beside them, a wave of blocks at a time.
    double time(const StreamTile &tile) const {
        const double a_multiprocessor = static_cast<double>(pieces(tile) * tile.parts) / facts_.multiprocessors;
        const bool in_turn = a_multiprocessor < 4 * tile.blocks;
        const double waves = std::max(1.0, (in_turn ? std::ceil(a_multiprocessor) : a_multiprocessor) / tile.blocks);
        // Nothing multiplies while a lone warpgroup takes exponentials; blocks that share a multiprocessor fill each other's gaps best.
        const double overlap = tile.warpgroups * tile.blocks == 1 ? (form_.group > 0 ? 1.6 : 1.3)
                               : tile.blocks > 1                  ? (has_wide_heads()   ? 1.05
                                                                     : tile.blocks == 2 ? 0.96
                                                                                        : 0.93)
                               : tile.warpgroups == 3             ? 1.1
                                                                  : 1.0;
        const bool half = leaves_out_keys();  // and as much as a tile's corner
        const double visited = half ? static_cast<double>(keys_ + tile.warpgroups * 64 + tile.keys) / 2 : static_cast<double>(keys_);
        const double steps = !half ? std::ceil(std::ceil(visited / tile.keys) / tile.parts) : visited / tile.keys;
        const double per_step =
            tile.keys * tile.warpgroups * tile.blocks * (static_cast<double>(depth_ + columns_) / 128 + 1) * overlap + 60;
        const double step_bytes = static_cast<double>(tile.keys * (depth_ + columns_) * form_.type.bytes() * tile.blocks);
        const double merging = tile.parts == 1 ? 0
                               : tile.cluster  ? 1000 * tile.parts
                                               : 600 + 150 * tile.parts;  // clusters leave multiprocessors idle
        const double computing = waves * (steps * std::max(per_step, step_bytes / 185) + (tile.persistent ? 200 : 450));
        return merging + std::max(computing, reading(step_bytes * tile.stages * std::min(1.0, a_multiprocessor / tile.blocks)) +
                                                 10 * steps + per_step);
    }

private:
    /// What keys and values take from memory, as far as so many bytes under way on each multiprocessor hide how long one takes.
    double reading(double bytes_under_way) const {
        constexpr double enough_under_way = 64 << 10, units_a_second = 6e8;
        const auto bytes = static_cast<double>(planes_ * keys_ * (depth_ + columns_) * form_.type.bytes());
        return bytes / facts_.memory_bandwidth * units_a_second * std::max(1.0, enough_under_way / bytes_under_way);
    }
    /// Tensors that the score function reads along the keys: registers hold what a step needs, shared memory the tiles of those with rows.
    void count_reads(const Halide::Expr &e) {
        visit_reads(e, [&](const Halide::Internal::Call *read) {
            const auto runs_along = [&](const std::string &axis) {
                return std::any_of(read->args.begin(), read->args.end(), [&](const Halide::Expr &index) { return mentions(index, axis); });
            };
            if (read->call_type == Halide::Internal::Call::Image && runs_along(form_.streamed)) {
                held_bytes_ += std::max(read->type.bytes(), 2);
                score_bytes_ += runs_along(form_.axes[form_.row]) ? read->type.bytes() : 0;
            }
        });
    }

    const StreamingForm &form_;
    const GpuFacts &facts_;
    std::int64_t held_bytes_ = 0;  ///< of an element of the scores
    std::int64_t columns_ = 0, depth_ = 0, rows_ = 0, keys_ = 0, planes_ = 1, score_bytes_ = 0;
};

}  // namespace

std::vector<StreamTile> stream_tiles(const StreamingForm &form, const Algorithm &algorithm, const GpuFacts &facts) {
    const TileCost cost(form, algorithm, facts);
    std::vector<std::pair<double, StreamTile>> scored;
    for (const int keys : {128, 96, 64, 112, 160, 176, 192, 208, 32}) {
        for (const auto &[warpgroups, blocks] : {std::pair{2, 1}, {3, 1}, {1, 1}, {1, 2}, {1, 3}, {2, 2}}) {
            for (const int stages : {2, 3, 4}) {
                StreamTile tile{keys, warpgroups, stages, cost.planes() >= 8 ? 8 : 1, warpgroups > 1, blocks, true};
                const std::int64_t pieces = cost.pieces(tile), resident = facts.multiprocessors * blocks;
                if (pieces > resident && cost.fits(tile)) {
                    scored.emplace_back(cost.time(tile), tile);
                }
                tile.persistent = false;
                const bool fits = cost.fits(tile);
                for (tile.parts = 1; fits && (tile.parts == 1 || pieces * tile.parts <= 2 * resident); tile.parts *= 2) {
                    tile.cluster = false;
                    scored.emplace_back(cost.time(tile), tile);
                    tile.cluster = tile.parts > 1 && tile.parts <= facts.largest_cluster;
                    if (tile.cluster && cost.fits(tile)) {
                        scored.emplace_back(cost.time(tile), tile);
                    }
                }
            }
        }
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<StreamTile> tiles;
    for (const auto &[time, tile] : scored) {
        tiles.push_back(tile);
        tiles.back().hides = cost.has_wide_heads();
        if (tile.turns) {
            tiles.push_back(tiles.back());
            tiles.back().turns = false;
        }
    }
    return tiles;
}

Directives streaming_schedule(const StreamingForm &form, const Algorithm &algorithm, const StreamTile &tile) {
    ScheduleBuilder builder;
    const Stage &second = algorithm.stages[form.second], &first = algorithm.stages[form.first], &anchor = anchor_of(form, algorithm);
    const int columns = static_cast<int>(round_up(second.extents[form.column].value(), 32));
    const std::vector<std::string> &axes = anchor.func.function().args();
    std::vector<std::string> grid{"mo"};
    for (int i = second.rank() - 1; i >= 0 && grid.size() < 3; --i) {
        if (i != form.row && i != form.column) {
            grid.push_back(axes[i]);
        }
    }
    StageSchedule a = builder[anchor.name()];
    a.split(axes[form.row], "mo", "mi", 64 * tile.warpgroups);
    grid.size() == 1 ? a.gpu_blocks(grid[0]) : grid.size() == 2 ? a.gpu_blocks(grid[0], grid[1]) : a.gpu_blocks(grid[0], grid[1], grid[2]);
    StageSchedule s = builder[second.name()];
    if (anchor.name() != second.name()) {
        s.compute_at(anchor.name(), "mo").store_in("register");
    }
    s.split(form.streamed, "so", "si", tile.keys);
    const std::string &maximum = algorithm.stages[form.maximum].name();
    form.totals.empty() ? s.stream("so", maximum) : s.stream("so", maximum, algorithm.stages[form.totals[0]].name());
    s.tensor_core(64, columns, 16).warpgroups(tile.warpgroups).pipeline("so", tile.stages).producer_warps(1);
    if (tile.hides) {
        s.hide_exponentials();
    }
    if (tile.turns) {
        s.take_turns();
    }
    if (tile.parts > 1) {
        s.split_blocks("so", tile.parts);
        if (tile.cluster) {
            s.cluster(tile.parts, 1);
        }
    }
    if (tile.persistent) {
        s.persistent();
    }
    if (tile.raster > 1) {
        s.raster(tile.raster);
    }
    if (tile.blocks > 1) {
        s.launch_bounds((tile.warpgroups + 1) * 128, tile.blocks);
    }
    builder[first.name()].compute_at(second.name(), "so").tensor_core(64, tile.keys, 16);
    return builder.directives;
}

}  // namespace tilewright
