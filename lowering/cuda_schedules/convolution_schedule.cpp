#include "lowering/cuda_schedules/convolution_schedule.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/window.h"
#include "dsl/schedule/builder.h"
#include "lowering/cuda_schedules/schedule_draft.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::int64_t copy_alignment = 8;  // elements of two bytes
constexpr std::int64_t depth_of_step = 64;
constexpr std::int64_t most_stages = 10;

bool is_half(const Halide::Type &type) { return (type.is_float() || type.is_bfloat()) && type.bits() == 16; }

class ConvolutionMatcher {
public:
    ConvolutionMatcher(const Kernel &kernel, const Stage &stage, const Fold &fold)
        : algorithm_(kernel.algorithm), stage_(stage), fold_(fold) {}

    std::optional<Convolution> run() {
        const Expr term = inline_lets(fold_.terms[0]);
        const auto *product = term.as<hi::Mul>();
        auto left = product ? read(product->a) : std::nullopt, right = product ? read(product->b) : std::nullopt;
        if (!left || !right || !(left->read->type == right->read->type) || !is_half(left->read->type)) {
            return std::nullopt;
        }
        if (is_weights(*left)) {
            std::swap(left, right);
        }
        if (!is_weights(*right) || !find_depth(*left, *right) || !find_arguments(*left, *right)) {
            return std::nullopt;
        }
        result_.product = stage_.name();
        find_window(*left);
        for (std::size_t i = 0; i < fold_.variables.size(); ++i) {
            const Extent &extent = stage_.reduction_extents[i];
            result_.k = result_.k * extent;
            result_.steps = result_.steps * (fold_.variables[i] == result_.depth ? ceil_div(extent, depth_of_step) : extent);
        }
        return result_;
    }

private:
    std::optional<WindowRead> read(const Expr &factor) const {
        return match_window_read(
            factor, stage_.func.function().args(), fold_.variables,
            [&](const std::string &name) {
                const TensorInput *input = algorithm_.find_input(name);
                return input ? &input->meta.sizes : nullptr;
            },
            true);
    }
    static bool is_weights(const WindowRead &read) {
        int arguments = 0;
        for (const WindowIndex &index : read.indices) {
            arguments += index.pixel.empty() ? 0 : 1;
            if (!index.is_plain() && !(index.tap.size() && index.dilation == 1 && index.pixel.empty() && index.offset == Extent(0))) {
                return false;
            }
        }
        return arguments == 1;
    }
    /// Both tensors run along one reduction variable, or the weights along the output's channels; the copy unit can follow their other
    /// strides.
    bool find_depth(const WindowRead &pixels, const WindowRead &weights) {
        const TensorMeta &of_pixels = algorithm_.find_input(pixels.read->name)->meta,
                         &of_weights = algorithm_.find_input(weights.read->name)->meta;
        for (std::size_t i = 0; i < pixels.indices.size(); ++i) {
            const WindowIndex &index = pixels.indices[i];
            const bool run = !index.pixel.empty() && index.dilation == 1 && index.stride % copy_alignment == 0 && index.offset == Extent(0);
            if (of_pixels.strides[i] == Extent(1) && (index.pixel.empty() || run) && !index.tap.empty() && result_.depth.empty()) {
                result_.depth = index.tap;
            } else if (!can_follow(of_pixels, i)) {
                return false;
            }
        }
        bool runs = false;
        for (std::size_t i = 0; i < weights.indices.size(); ++i) {
            const bool own = weights.indices[i].tap == result_.depth || !weights.indices[i].pixel.empty();
            if (own && of_weights.strides[i] == Extent(1) && !runs) {
                runs = true;
            } else if (!can_follow(of_weights, i)) {
                return false;
            }
        }
        return runs && !result_.depth.empty();
    }
    static bool can_follow(const TensorMeta &meta, std::size_t dimension) {
        return meta.sizes[dimension] == Extent(1) || mod(meta.strides[dimension], copy_alignment) == Extent(0);
    }

    bool find_arguments(const WindowRead &pixels, const WindowRead &weights) {
        const std::vector<std::string> arguments = stage_.func.function().args();
        Extent count = 1, channels = 1;
        for (int i = 0; i < stage_.rank(); ++i) {
            const int shared = pixels.dimension_shared_along(arguments[i]);
            const bool in_pixels = pixels.varies_along(arguments[i]) && shared < 0, in_weights = weights.varies_along(arguments[i]);
            if (in_pixels == in_weights && (in_pixels || shared >= 0)) {
                return false;
            }
            result_.group = shared >= 0 ? pixels.indices[shared].sharers : result_.group;
            if (in_weights) {
                result_.channels = i;
                channels = stage_.extents[i];
            } else if (in_pixels || stage_.extents[i] == Extent(1)) {
                result_.pixels.push_back(i);
                count = count * stage_.extents[i];
            } else {
                return false;
            }
        }
        const TensorOutput &output = algorithm_.outputs.front();
        const bool same_rank = static_cast<int>(output.meta.strides.size()) == stage_.rank();
        result_.pixels_innermost =
            same_rank && !(output.meta.strides[result_.channels] == Extent(1)) && output.meta.strides[result_.pixels.back()] == Extent(1);
        if (result_.pixels_innermost && result_.group > 0) {
            return false;
        }
        result_.right = (result_.pixels_innermost ? pixels : weights).read->name;
        result_.m = result_.pixels_innermost ? channels : count;
        result_.n = result_.pixels_innermost ? count : channels;
        return true;
    }

    void find_window(const WindowRead &pixels) {
        if (result_.pixels.size() < 2 || result_.pixels_innermost || result_.group > 0) {
            return;
        }
        const int argument = result_.pixels.back();
        const std::string &name = stage_.func.function().args()[argument];
        const auto found =
            std::find_if(pixels.indices.begin(), pixels.indices.end(), [&](const WindowIndex &i) { return i.pixel == name; });
        const auto tap =
            found == pixels.indices.end() ? fold_.variables.end() : std::find(fold_.variables.begin(), fold_.variables.end(), found->tap);
        if (tap == fold_.variables.end() || tap + 1 != fold_.variables.end() || found->stride != 1 || found->tap == result_.depth) {
            return;
        }
        const auto taps = stage_.reduction_extents[tap - fold_.variables.begin()].constant(), outputs = stage_.extents[argument].constant();
        if (!taps || *taps < 2 || !outputs) {
            return;
        }
        const bool alone = tap == fold_.variables.begin() || *(tap - 1) == result_.depth;
        result_.window = Convolution::Window{pixels.read->name, alone ? "ko" : *(tap - 1), *taps, (*taps - 1) * found->dilation, *outputs};
    }

    const Algorithm &algorithm_;
    const Stage &stage_;
    const Fold &fold_;
    Convolution result_;
};

/// Slots of the pipeline that fit beside all terms of the weights, where all tiles share them; 0 where they do not.
int stages_beside_right(const Convolution &convolution, const ProductTile &tile, const GpuFacts &facts) {
    const auto n = convolution.n.constant(), steps = convolution.steps.constant();
    if (!n || !steps || *n > tile.n || tile.parts > 1 || tile.turned || convolution.pixels_innermost) {
        return 0;
    }
    const std::int64_t row = 128, staging = 2 * tile.warpgroups * 64 * row, left = tile.m / tile.warpgroups * row;
    return static_cast<int>(
        std::clamp<std::int64_t>((facts.shared_per_block - staging - 2048 - *steps * tile.n * row) / left, 0, most_stages));
}

/// Slots of the pipeline that fit where pixels come once for the taps of a window; 0 where they do not.
int stages_with_windows(const Convolution &convolution, const ProductTile &tile, const GpuFacts &facts) {
    constexpr std::int64_t most_halo = 24;
    if (!convolution.window || convolution.window->halo > most_halo || tile.parts > 1 || tile.turned) {
        return 0;
    }
    const std::int64_t row = 128, staging = 2 * tile.warpgroups * 64 * row;
    const std::int64_t step = tile.keeps_right ? tile.m / tile.warpgroups : tile.m;
    const std::int64_t pixels = (step + convolution.window->halo + 7) / 8 * 8 * row, weights = tile.n * row;
    const std::int64_t kept = tile.keeps_right ? convolution.steps.value() * weights : 0,
                       slot = tile.keeps_right ? pixels : pixels + convolution.window->taps * weights;
    return static_cast<int>(std::clamp<std::int64_t>((facts.shared_per_block - staging - 2048 - kept) / slot, 0, most_stages));
}

/// Tiles as wide as a group of channels, or a part of it.
std::vector<ProductTile> grouped_tiles(const Convolution &convolution, const SymbolRanges &symbols, const GpuFacts &facts) {
    constexpr int widest = 256;
    std::vector<std::pair<std::int64_t, ProductTile>> scored;
    for (std::int64_t width = std::min<std::int64_t>(convolution.group, widest); width >= 8; --width) {
        if (width % 8 != 0 || convolution.group % width != 0) {
            continue;
        }
        for (const int warpgroups : {2, 1}) {
            ProductTile tile{64 * warpgroups, static_cast<int>(width), warpgroups};
            const std::int64_t slot = (tile.m + tile.n) * depth_of_step * 2, staging = 2L * warpgroups * 64 * 128;
            tile.stages = static_cast<int>(std::min<std::int64_t>((facts.shared_per_block - staging - 2048) / slot, most_stages));
            // Cycles of all tiles of a multiprocessor; only their order matters.
            const std::int64_t tiles =
                std::max<std::int64_t>((ceil_div(convolution.m, tile.m) * ceil_div(convolution.n, tile.n)).bounds(symbols).max, 1);
            const std::int64_t steps = std::max<std::int64_t>(convolution.steps.bounds(symbols).max, 1);
            scored.emplace_back((tiles + facts.multiprocessors - 1) / facts.multiprocessors * (steps * (tile.m + tile.n) + 1500), tile);
        }
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<ProductTile> tiles;
    for (const auto &[time, tile] : scored) {
        tiles.push_back(tile);
    }
    return tiles;
}

}  // namespace

std::optional<Convolution> match_convolution(const Kernel &kernel, const GpuFacts &facts) {
    if (!facts.warpgroup_multiply || !facts.bulk_copy) {
        return std::nullopt;
    }
    const Stage *stage = nullptr;
    for (const Stage &s : kernel.algorithm.stages) {
        if (s.func.function().has_update_definition() || s.func.function().has_extern_definition()) {
            const Form form = classify(s);
            if (stage || (form != Form::window && form != Form::contraction)) {
                return std::nullopt;
            }
            stage = &s;
        }
    }
    const auto fold = stage ? match_fold(stage->func) : std::nullopt;
    if (!fold || fold->combiner != Combiner::sum || fold->terms.size() != 1 || !(stage->func.types()[0] == Halide::Float(32))) {
        return std::nullopt;
    }
    auto result = ConvolutionMatcher(kernel, *stage, *fold).run();
    if (!result || !collect_outputs(kernel, {result->product}, result->outputs)) {
        return std::nullopt;
    }
    const bool same_axes = kernel.algorithm.find_stage(result->outputs.front())->extents == stage->extents;
    return same_axes ? result : std::nullopt;
}

std::vector<ProductTile> convolution_tiles(const Convolution &convolution, const SymbolRanges &symbols, const GpuFacts &facts) {
    if (convolution.group > 0) {
        return grouped_tiles(convolution, symbols, facts);
    }
    MatrixProduct product;
    product.products = {convolution.product};
    product.m = convolution.m;
    product.n = convolution.n;
    product.k = convolution.k;
    std::vector<ProductTile> tiles;
    const auto with_windows = [&](ProductTile tile) {
        tile.stages = stages_with_windows(convolution, tile, facts);
        tile.windows = true;
        if (tile.stages >= 2) {
            tiles.push_back(tile);
        }
    };
    for (const ProductTile &tile : product_tiles(product, symbols, facts)) {
        if (tile.parts > 1 && !tile.cluster) {
            continue;  // sums of a second pass would be as large as the output
        }
        if (const int stages = stages_beside_right(convolution, tile, facts); stages >= 3) {
            ProductTile keeping = tile;
            keeping.keeps_right = true;
            keeping.stages = stages;
            tiles.push_back(keeping);
            with_windows(keeping);
        }
        tiles.push_back(tile);
        with_windows(tile);
    }
    return tiles;
}

Directives convolution_schedule(const Convolution &convolution, const ProductTile &tile) {
    ScheduleBuilder builder;
    const std::string &anchor = convolution.outputs.front();
    StageSchedule s = builder[anchor];
    // Pixels stand outside of channels, and are one axis.
    std::vector<DirectiveArgument> innermost_first{argument(convolution.channels)};
    for (auto i = convolution.pixels.rbegin(); i != convolution.pixels.rend(); ++i) {
        innermost_first.push_back(argument(*i));
    }
    builder.directives.push_back({anchor, "reorder", innermost_first, {}, {}});
    std::vector<std::string> walked;
    for (int i : convolution.pixels) {
        walked.push_back(argument(i));
    }
    if (tile.windows) {  // rows have places for all of a window, so that those of one row do not end in the next
        s.split(walked.back(), "line", "place", convolution.window->outputs + convolution.window->halo);
        walked.back() = "line";
        walked.push_back("place");
    }
    std::string pixels = walked.front();
    for (std::size_t i = 1; i < walked.size(); ++i) {
        const std::string fused = i + 1 == walked.size() ? "pixels" : "pixels" + std::to_string(i);
        s.fuse(pixels, walked[i], fused);
        pixels = fused;
    }
    std::string rows = pixels, columns = argument(convolution.channels);
    if (convolution.pixels_innermost) {
        std::swap(rows, columns);
        s.reorder(columns, rows);
    }
    s.tile(rows, columns, "mo", "no", "mi", "ni", tile.turned ? tile.n : tile.m, tile.turned ? tile.m : tile.n);
    s.gpu_blocks("no", "mo");
    StageSchedule p = builder[convolution.product];
    if (convolution.product != anchor) {
        p.compute_at(anchor, "no").store_in("register");
    }
    p.tensor_core(64, tile.n, 16)
        .warpgroups(tile.warpgroups)
        .split(convolution.depth, "ko", "ki", depth_of_step)
        .pipeline("ko", tile.stages)
        .producer_warps(1)
        .raster(tile.raster);
    if (tile.keeps_right) {
        builder[convolution.right].in(convolution.product).compute_at(anchor, "no").store_in("shared");
        if (tile.warpgroups > 1) {
            p.take_turns();
        }
    }
    if (tile.windows) {
        const Convolution::Window &window = *convolution.window;
        builder[window.tensor].in(convolution.product).compute_at(convolution.product, window.loop).store_in("shared");
    }
    if (tile.parts > 1) {
        p.split_blocks("ko", tile.parts).cluster(tile.parts, 1);
    } else {
        p.persistent();
    }
    for (std::size_t i = 1; i < convolution.outputs.size(); ++i) {
        if (convolution.outputs[i] != convolution.product) {
            builder[convolution.outputs[i]].compute_with(anchor, "no");
        }
    }
    return builder.directives;
}

}  // namespace tilewright
