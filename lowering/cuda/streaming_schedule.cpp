#include "lowering/cuda/streaming_schedule.h"

#include <algorithm>
#include <tuple>

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

}  // namespace

std::vector<StreamTile> stream_tiles(const StreamingForm &form, const Algorithm &algorithm, const GpuFacts &facts) {
    const Stage &second = algorithm.stages[form.second];
    const std::int64_t columns = round_up(second.extents[form.column].value(), 32), depth = round_up(form.depth_extent.value(), 64);
    const std::int64_t rows = second.extents[form.row].bounds(algorithm.symbols).max, keys = form.streamed_extent.bounds(algorithm.symbols).max;
    Extent planes = 1;
    for (int i = 0; i < second.rank(); ++i) {
        planes = i == form.row || i == form.column ? planes : planes * second.extents[i];
    }
    const std::int64_t batch = std::max<std::int64_t>(planes.bounds(algorithm.symbols).max, 1);
    struct Scored {
        StreamTile tile;
        double cost;
    };
    std::vector<Scored> scored;
    for (const int step : {128, 96, 64, 160, 192, 32}) {
        for (const auto &[warpgroups, blocks] : {std::pair{2, 1}, {3, 1}, {1, 1}, {1, 2}, {2, 2}}) {
            for (const int stages : {2, 3, 4}) {
                const std::int64_t threads = (warpgroups + 1) * 128;
                const std::int64_t bytes = (warpgroups * 64 * depth + stages * step * (depth + round_up(columns, 64))) * form.type.bytes() + 1024;
                const std::int64_t at_launch = std::min<std::int64_t>(facts.registers_per_multiprocessor / (threads * blocks) / 8 * 8, 248);
                const std::int64_t registers = std::min<std::int64_t>((at_launch * (warpgroups + 1) - 24) / warpgroups / 8 * 8, 240);
                constexpr int bookkeeping = 44;  // addresses, loop counters, row statistics
                if (bytes > facts.shared_per_block || blocks * (bytes + facts.shared_reserved_per_block) > facts.shared_per_multiprocessor ||
                    columns / 2 + step / 2 + step / 4 + bookkeeping > registers || (stages > 2 && step > keys)) {
                    continue;
                }
                // Time of a step: multiplies of all rows, and what a step costs beside them; a wave of blocks at a time.
                const double fill = static_cast<double>(batch * ((rows + warpgroups * 64 - 1) / (warpgroups * 64))) / (facts.multiprocessors * blocks);
                const double waves = std::max(1.0, fill < 4 ? std::ceil(fill) : fill);
                const double overlap = warpgroups * blocks >= 2 ? 1.0 : 1.3;  // nothing multiplies while a lone warpgroup takes exponentials
                const double steps = static_cast<double>((keys + step - 1) / step);
                const double per_step = static_cast<double>(step) * warpgroups * blocks * (static_cast<double>(depth + columns) / 128 + 1) * overlap + 60;
                scored.push_back({{step, warpgroups, stages, batch >= 8 && keys >= 2048 ? 8 : 1, warpgroups > 1, blocks}, waves * (steps * per_step + 200)});
            }
        }
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored &a, const Scored &b) { return a.cost < b.cost; });
    std::vector<StreamTile> tiles;
    for (const Scored &s : scored) {
        tiles.push_back(s.tile);
        if (s.tile.turns) {
            tiles.push_back(s.tile);
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
    if (tile.turns) {
        s.take_turns();
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
