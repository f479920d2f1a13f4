#include "lowering/fusion/channel_layout.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/window.h"
#include "lowering/fusion/index_map.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::int64_t fewest_channels = 16;   // of a step of 64 that the matrix unit takes
constexpr std::int64_t channel_alignment = 8;  // what the bulk copy unit moves: 16 bytes

bool is_half(const Halide::Type &type) { return (type.is_float() || type.is_bfloat()) && type.bits() == 16; }

/// The dimension that the read takes at this variable alone, or -1.
int dimension_at(const WindowRead &read, const std::string &tap) {
    for (std::size_t i = 0; i < read.indices.size(); ++i) {
        const WindowIndex &index = read.indices[i];
        if (index.tap == tap && (index.pixel.empty() || index.sharers > 1) && index.dilation == 1 && index.offset == Extent(0)) {
            return static_cast<int>(i);
        }
    }
    return -1;
}
bool has_windows(const WindowRead &read) {
    return std::any_of(read.indices.begin(), read.indices.end(),
                       [](const WindowIndex &index) { return !index.pixel.empty() && !index.is_plain(); });
}
/// Dimensions that are read at arguments of the stage.
std::ptrdiff_t pixel_dimensions(const WindowRead &read) {
    return std::count_if(read.indices.begin(), read.indices.end(), [](const WindowIndex &index) { return !index.pixel.empty(); });
}

/// Whether a value of the stage's rank is read, at these dimensions at the stage's own places.
bool reads_at(const ResolvedRead &read, const std::vector<int> &dimensions, const StageNode &reader) {
    return read.indices.size() == reader.axes.size() && std::all_of(dimensions.begin(), dimensions.end(), [&](int dimension) {
               const auto *variable = read.indices[dimension].as<hi::Variable>();
               return variable && variable->name == reader.axes[dimension].name;
           });
}

/// The dimensions of `to`, of as many elements in the same order, that hold what neighbouring dimensions of `from` do; empty where none do.
std::vector<int> reshaped(const std::vector<int> &dimensions, const std::vector<Extent> &from, const std::vector<Extent> &to) {
    const auto first = from.begin() + dimensions.front();
    const Extent before = product({from.begin(), first}), inside = product({first, first + static_cast<std::ptrdiff_t>(dimensions.size())});
    if (dimensions.back() - dimensions.front() + 1 != static_cast<int>(dimensions.size())) {
        return {};
    }
    std::vector<int> result;
    Extent passed = 1, held = 1;
    for (int i = 0; i < static_cast<int>(to.size()) && !(held == inside && !result.empty()); ++i) {
        if (passed == before) {
            result.push_back(i);
            held = held * to[i];
        } else {
            passed = passed * to[i];
        }
    }
    return held == inside ? result : std::vector<int>();
}

}  // namespace

ChannelLayout::ChannelLayout(const StageGraph &graph) : graph_(graph) {
    for (int node : graph.real_nodes()) {
        const Form form = graph.node(node).form;
        if (form == Form::window || form == Form::contraction) {
            visit_convolution(node);
        }
    }
    spread();
}

std::vector<int> ChannelLayout::innermost_of_node(int node) const {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? std::vector<int>() : found->second;
}

std::vector<int> ChannelLayout::innermost_of_input(int input) const {
    const auto found = inputs_.find(input);
    return found == inputs_.end() ? std::vector<int>() : found->second;
}

void ChannelLayout::visit_convolution(int index) {
    const Stage &stage = *graph_.node(index).stage;
    const auto fold = match_fold(stage.func);
    if (!fold || fold->combiner != Combiner::sum || fold->terms.size() != 1 || !(stage.func.types()[0] == Halide::Float(32))) {
        return;
    }
    const Expr term = inline_lets(fold->terms[0]);
    const auto *product = term.as<hi::Mul>();
    const auto read = [&](const Expr &factor) {
        return match_window_read(
            factor, stage.func.function().args(), fold->variables,
            [&](const std::string &name) -> const std::vector<Extent> * {
                const int input = graph_.find_input(name), node = graph_.find_stage(name);
                return input >= 0 ? &graph_.algorithm().inputs[input].meta.sizes : node >= 0 ? &graph_.node(node).stage->extents : nullptr;
            },
            true);
    };
    auto pixels = product ? read(product->a) : std::nullopt, weights = product ? read(product->b) : std::nullopt;
    if (!pixels || !weights || !is_half(pixels->read->type) || !(pixels->read->type == weights->read->type)) {
        return;
    }
    if (has_windows(*weights) || (!has_windows(*pixels) && pixel_dimensions(*weights) >= 3)) {
        std::swap(pixels, weights);
    }
    if (has_windows(*weights) || pixel_dimensions(*weights) != 1 || !(has_windows(*pixels) || pixel_dimensions(*pixels) >= 3)) {
        return;
    }
    for (std::size_t i = 0; i < fold->variables.size(); ++i) {
        const int of_pixels = dimension_at(*pixels, fold->variables[i]), of_weights = dimension_at(*weights, fold->variables[i]);
        const Extent &channels = stage.reduction_extents[i];
        const auto count = channels.constant();
        // What lies innermost is padded to the alignment (storage_layout.h), but a group's channels begin where those before it end.
        const bool aligned = of_pixels >= 0 && count && (*count % channel_alignment == 0 || pixels->indices[of_pixels].sharers == 1);
        if (of_pixels >= 0 && of_weights >= 0 && count && *count >= fewest_channels && aligned) {
            prefer(pixels->read, of_pixels);
            prefer(weights->read, of_weights);
            // What it computes is pixels too: the argument that the weights alone vary along.
            for (int argument = 0; argument < stage.rank(); ++argument) {
                const std::string &name = stage.func.function().args()[argument];
                if (weights->varies_along(name) && (!pixels->varies_along(name) || pixels->dimension_shared_along(name) >= 0)) {
                    nodes_.emplace(index, std::vector{argument});
                }
            }
            return;
        }
    }
}

void ChannelLayout::prefer(const hi::Call *read, int dimension) {
    const int input = graph_.find_input(read->name);
    if (input >= 0) {
        inputs_.emplace(input, std::vector{dimension});
    } else if (const int node = graph_.find_stage(read->name); node >= 0) {
        nodes_.emplace(node, std::vector{dimension});
        multiplied_.insert(node);
    }
}

void ChannelLayout::spread() {
    const int count = static_cast<int>(graph_.nodes().size());
    for (int node = 0; node < count; ++node) {
        spread_forwards(node);
    }
    for (int node = count; node-- > 0;) {
        spread_backwards(node);
    }
}

/// A stage of the same rank lies as what it reads at its own channels.
void ChannelLayout::spread_forwards(int reader) {
    const StageNode &node = graph_.node(reader);
    for (const ResolvedRead &read : node.reads) {
        const auto known = nodes_.find(read.producer);
        if (known != nodes_.end() && reads_at(read, known->second, node)) {
            nodes_.emplace(reader, known->second);
        }
    }
}

/// What a stage reads lies as the stage itself does: at its own channels, or at those that a reshape makes of them.
void ChannelLayout::spread_backwards(int reader) {
    const auto known = nodes_.find(reader);
    if (known == nodes_.end()) {
        return;
    }
    const StageNode &node = graph_.node(reader);
    for (const ResolvedRead &read : node.reads) {
        if (read.producer < 0) {
            continue;
        }
        const std::vector<Extent> &sizes = graph_.node(read.producer).stage->extents;
        if (reads_at(read, known->second, node)) {
            nodes_.emplace(read.producer, known->second);
        } else if (node.is_map && is_reshape(read.indices, node.axes, sizes, SamplePoints(node.axes, graph_.algorithm().symbols))) {
            const std::vector<int> dimensions = reshaped(known->second, node.stage->extents, sizes);
            if (!dimensions.empty()) {
                nodes_.emplace(read.producer, dimensions);
            }
        }
    }
}

}  // namespace tilewright
