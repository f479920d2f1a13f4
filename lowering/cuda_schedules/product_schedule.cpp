#include "lowering/cuda_schedules/product_schedule.h"

#include <algorithm>

#include "dsl/schedule/builder.h"
#include "lowering/cuda_schedules/schedule_draft.h"
#include "lowering/products/staged_rows.h"
#include "lowering/products/unit_element.h"

namespace tilewright {

namespace {

constexpr std::int64_t depth_bytes = 128;
constexpr int most_sums = 192;  // registers of a thread: what else it keeps needs some too

/// What a product takes on a tile, in cycles of a multiprocessor; only their order matters.
class TileCost {
public:
    TileCost(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) : facts_(facts) {
        const auto largest = [&](const Extent &e) { return std::max<std::int64_t>(e.bounds(symbols).max, 1); };
        products_ = static_cast<int>(product.products.size());
        depth_ = depth_bytes / product.bytes;
        row_bytes_ = product.row_bytes, column_bytes_ = product.column_bytes;
        computes_ = product.computed_rows || product.computed_columns;
        ragged_ = product.ragged;
        m_ = largest(product.m), n_ = largest(product.n), k_ = largest(product.k), batch_ = largest(product.batch);
    }
    std::int64_t steps() const { return ceil(k_, depth_); }

    double operator()(const ProductTile &tile) const {
        const std::int64_t rows = tile.turned ? n_ : m_, columns = tile.turned ? m_ : n_;
        const std::int64_t blocks = batch_ * ceil(rows, tile.m) * ceil(columns, tile.n) * tile.parts;
        // Clusters of more than two blocks leave multiprocessors idle: groups of them have no multiple of four.
        const std::int64_t usable = tile.row_blocks > 2              ? facts_.multiprocessors / 16 * 16
                                    : tile.parts > 2 && tile.cluster ? facts_.multiprocessors * 4 / 5
                                                                     : facts_.multiprocessors;
        const double waves = static_cast<double>(ceil(blocks, usable));
        // A step: multiplies (the unit is not faster for fewer than 32 columns), or what comes from the L2 cache for it.
        const int fetches = tile.takes_turns ? tile.warpgroups : 1;  // of the right operand
        const double multiply = products_ * tile.m * std::max(tile.n, 32) / 32.0,
                     fetch = (tile.warpgroups == 1 ? 1.9 : 2.5) * (tile.m + products_ * tile.n * fetches);
        const double computed = computes_ ? 350.0 * tile.m / (64 * (1 + 0.2 * (tile.warpgroups - 1)))
                                          : 0;  // a warpgroup computes, then multiplies; two hardly overlap
        const double sums = static_cast<double>(tile.m) * tile.n * products_;
        const double exchanged =
            static_cast<double>(batch_) * m_ * n_ * products_ * 8 * tile.parts;  // bytes written and read by a second pass
        const double shared_sums = tile.parts == 1  ? 0
                                   : !tile.cluster  ? 16000 + exchanged / (32.0 * facts_.multiprocessors)
                                   : tile.parts > 2 ? 10000 + sums / 2
                                                    : 2000 + sums * 0.75;
        const double terms = static_cast<double>(ceil(steps(), tile.parts)) * std::max(multiply + computed, fetch),
                     stores = sums / (ragged_ ? 4 : 16);
        const double one = tile.takes_turns ? std::max(terms, stores) + 2500 : terms + 1500 + stores + shared_sums;
        const double memory = static_cast<double>(batch_) * (row_bytes_ * m_ * k_ + column_bytes_ * products_ * n_ * k_ + 2.0 * m_ * n_) /
                              (facts_.memory_bandwidth / 1.7e9);
        const double narrow_strips = tile.n > 64 && tile.n % 64 != 0 ? 1.03 : 1;
        const double held_rows = tile.row_blocks > 1 ? 1.3 : 1;  // a cluster's blocks run at the pace of the slowest
        return (std::max(waves * one, memory) + waves * one / 64) * narrow_strips * held_rows;
    }

private:
    static std::int64_t ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
    const GpuFacts &facts_;
    int products_ = 1;
    double row_bytes_ = 2, column_bytes_ = 2;
    bool computes_ = false, ragged_ = false;
    std::int64_t depth_ = 64, m_, n_, k_, batch_;
};

/// Slots of the pipeline that shared memory holds beside the tiles that results are staged in; 0 where they are too few.
int stages_of(const ProductTile &tile, const MatrixProduct &product, const GpuFacts &facts) {
    const auto products = static_cast<std::int64_t>(product.products.size());
    const std::int64_t rows = tile.takes_turns ? tile.m / tile.warpgroups : tile.m;
    const std::int64_t slot = (rows + products * tile.n) * depth_bytes, staging = staging_bytes(tile.warpgroups, product.ragged);
    const std::int64_t rest = product.row_reductions.empty() ? 2048 : 2048 + 8 * tile.m;
    const auto stages = static_cast<int>(std::min<std::int64_t>((facts.shared_per_block - staging - rest) / slot, 8));
    return stages < 2 ? 0 : stages;
}

}  // namespace

std::vector<ProductTile> product_tiles(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts, std::size_t most) {
    const TileCost cost(product, symbols, facts);
    std::vector<std::pair<double, ProductTile>> scored;
    // All columns of a row are in one block, or in those of a cluster.
    const auto hold_rows = [&](ProductTile tile) {
        const std::int64_t blocks =
            product.n.is_constant() && !tile.turned ? (product.n.value() + tile.n - 1) / tile.n : facts.largest_cluster + 1;
        for (const bool persistent : {false, true}) {
            if (tile.stages > 0 && blocks <= facts.largest_cluster && !product.rows.empty()) {
                tile.row_blocks = static_cast<int>(blocks);
                tile.persistent = persistent;
                scored.emplace_back(cost(tile), tile);
            }
        }
    };
    const auto consider = [&](ProductTile tile) {
        const int products = static_cast<int>(product.products.size());
        const int sums = tile.m / (64 * tile.warpgroups) * tile.n / 2 * products + (product.sums_apart ? tile.n / 2 : 0);
        tile.stages = sums <= most_sums ? stages_of(tile, product, facts) : 0;
        if (!product.row_reductions.empty()) {
            hold_rows(tile);
            return;
        }
        for (tile.parts = 1; tile.stages > 0 && tile.parts <= facts.largest_cluster; tile.parts *= 2) {
            const bool shares = tile.n % (8 * tile.parts) == 0 && cost.steps() >= 4 * tile.parts && product.k.is_constant();
            for (tile.cluster = true; tile.parts == 1 || shares; tile.cluster = false) {
                scored.emplace_back(cost(tile), tile);
                if (tile.parts == 1 || !tile.cluster) {
                    break;
                }
            }
        }
        tile.parts = 1, tile.cluster = tile.takes_turns = true;
        tile.stages =
            sums <= most_sums && tile.warpgroups > 1 && !tile.turned && !product.computed_rows ? stages_of(tile, product, facts) : 0;
        if (tile.stages > 0) {
            scored.emplace_back(cost(tile), tile);
        }
    };
    for (const auto &[height, width, groups] : {std::tuple{128, 256, 2},
                                                {256, 128, 2},
                                                {128, 192, 2},
                                                {128, 160, 2},
                                                {128, 128, 2},
                                                {256, 64, 2},
                                                {128, 64, 2},
                                                {64, 256, 1},
                                                {64, 128, 1},
                                                {64, 64, 1},
                                                {128, 32, 2},
                                                {64, 32, 1},
                                                {192, 128, 3},
                                                {192, 192, 3},
                                                {128, 96, 2},
                                                {128, 224, 2}}) {
        if (!product.computed_columns && is_unit_width(width, product.bytes, product.computed_rows)) {
            consider({height, width, groups});
        }
    }
    // Few rows: the columns' operand fills the unit's 64 rows.
    std::vector<int> widths =
        product.products.size() == 1 && !product.computed_rows ? std::vector<int>{8, 16, 32, 48, 64} : std::vector<int>();
    if (product.computed_columns) {
        widths.insert(widths.end(), {96, 128, 192});
    }
    for (const int width : widths) {
        for (const int height :
             is_unit_width(width, product.bytes, product.computed_columns) ? std::vector<int>{64, 128} : std::vector<int>()) {
            ProductTile tile{height, width, height / 64};
            tile.turned = true;
            consider(tile);
        }
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<ProductTile> tiles;
    for (const auto &[time, tile] : scored) {
        if (tiles.size() < most) {
            tiles.push_back(tile);
        }
    }
    return tiles;
}

Directives product_schedule(const MatrixProduct &product, const ProductTile &tile) {
    ScheduleBuilder builder;
    const std::string &anchor = product.outputs.front();
    StageSchedule s = builder[anchor];
    const int height = tile.turned ? tile.n : tile.m, width = tile.turned ? tile.m : tile.n;
    std::vector<std::string> grid{"no"};
    if (product.rows.empty()) {
        s.split(argument(product.columns), "no", "ni", width);
    } else {
        std::string rows = argument(product.rows.front());
        for (std::size_t i = 1; i < product.rows.size(); ++i) {
            const std::string fused = i + 1 == product.rows.size() ? "m" : "m" + std::to_string(i);
            s.fuse(rows, argument(product.rows[i]), fused);
            rows = fused;
        }
        s.tile(rows, argument(product.columns), "mo", "no", "mi", "ni", height, width);
        grid.push_back("mo");
        for (int i = product.rows.front() - 1; i >= 0; --i) {
            grid.push_back(argument(i));
        }
    }
    grid.size() == 1 ? s.gpu_blocks(grid[0]) : grid.size() == 3 ? s.gpu_blocks(grid[0], grid[1], grid[2]) : s.gpu_blocks(grid[0], grid[1]);
    for (const std::string &name : product.products) {
        StageSchedule each = builder[name];
        if (name != anchor) {
            each.compute_at(anchor, "no").store_in("register");
        }
        each.tensor_core(64, tile.n, 32 / product.bytes);
    }
    StageSchedule p = builder[product.products.front()];
    p.warpgroups(tile.warpgroups)
        .split("r0", "ko", "ki", depth_bytes / product.bytes)
        .pipeline("ko", tile.stages)
        .producer_warps(1)
        .raster(tile.raster);
    if (product.sums_apart) {
        for (const std::string &name : product.products) {
            builder[name].sum_apart();
        }
    }
    if (tile.parts > 1) {
        p.split_blocks("ko", tile.parts);
        if (tile.cluster) {
            p.cluster(tile.parts, 1);
        }
    } else if (tile.persistent) {
        p.persistent();
    }
    if (tile.row_blocks > 1) {
        p.cluster(tile.row_blocks, 1);
    }
    for (const std::string &name : product.kept) {
        builder[name].compute_at(anchor, "no").store_in("register");
    }
    for (const std::string &name : product.row_reductions) {
        builder[name].compute_at(anchor, "mo");
    }
    if (tile.takes_turns) {
        p.take_turns();
    }
    if (tile.residents > 1) {
        p.launch_bounds((tile.warpgroups + 1) * 128, tile.residents);
    }
    for (std::size_t i = 1; i < product.outputs.size(); ++i) {
        if (std::find(product.products.begin(), product.products.end(), product.outputs[i]) == product.products.end()) {
            builder[product.outputs[i]].compute_with(anchor, "no");
        }
    }
    return builder.directives;
}

}  // namespace tilewright
