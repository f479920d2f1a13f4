#include "lowering/products/pixel_operand.h"

#include <fmt/format.h>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/window.h"
#include "lowering/products/pixel_walk.h"
#include "runtime/pixel_map.h"

namespace tilewright {

using Halide::Expr;

namespace {

constexpr int copy_alignment = 16;  // bytes

/// Settles which dimension of a window's tensor is which.
class PixelMatcher {
public:
    PixelMatcher(const WindowRead &window, const Stage &stage, const Member &member, const Nest &nest, const tile::Buffer &buffer)
        : window_(window), stage_(stage), member_(member), nest_(nest) {
        pixels_.buffer = buffer;
        pixels_.offset = 0;
    }

    std::optional<PixelOperand> run() {
        if (!sort_dimensions()) {
            return std::nullopt;
        }
        align();
        return std::move(pixels_);
    }

private:
    bool sort_dimensions() {
        std::map<std::string, int> dimension_of;
        for (int i = 0; i < static_cast<int>(window_.indices.size()); ++i) {
            const WindowIndex &index = window_.indices[i];
            if (index.sharers > 1) {
                if (!take_group(index, i)) {
                    return false;
                }
            } else if (!index.pixel.empty()) {
                if (!dimension_of.emplace(index.pixel, i).second) {
                    return false;
                }
                // Neighbours in memory are terms: pixels of one tap overlap those of the next.
                if (is_run(i) && !take_channels(index, i)) {
                    return false;
                }
            } else if (index.tap.empty()) {
                pixels_.offset = pixels_.offset + index.offset * pixels_.buffer.strides[i];
            } else if (!take_channels(index, i)) {
                return false;
            }
        }
        for (int i = 0; i < stage_.rank(); ++i) {
            if (auto found = dimension_of.find(arguments_[i]); found != dimension_of.end()) {
                rows_.push_back(i);
            }
        }
        if (!find_rows()) {
            return false;
        }
        std::size_t first = 0;
        pixels_.image = Expr(0);
        pixels_.image_stride = copy_alignment;  // of a single image: any legal one
        if (!pixels_.grouped.empty()) {
            pixels_.image = member_.environment.at(group_argument_) / static_cast<int>(pixels_.sharers);
            pixels_.image_stride = group_stride_;
            pixels_.images = group_count_;
        } else if (rows_.size() > 1 && window_.indices[dimension_of.at(arguments_[rows_[0]])].is_plain()) {
            const int dimension = dimension_of.at(arguments_[rows_[0]]);
            pixels_.image = member_.environment.at(arguments_[rows_[0]]);
            pixels_.images = pixels_.buffer.extents[dimension];
            pixels_.image_stride = pixels_.buffer.strides[dimension];
            first = 1;
        }
        for (std::size_t i = rows_.size(); i-- > first;) {
            const Extent &outputs = stage_.extents[rows_[i]];
            if (!add_space(dimension_of.at(arguments_[rows_[i]]), outputs, i + 1 == rows_.size() ? innermost_ : outputs)) {
                return false;
            }
        }
        return !pixels_.channels.empty() && !pixels_.space.empty() && pixels_.space.size() <= 3;
    }

    bool is_run(int dimension) const {
        return pixels_.buffer.strides[dimension] == Extent(1) && !window_.indices[dimension].pixel.empty() &&
               !window_.indices[dimension].tap.empty();
    }
    /// A group's channels are a dimension of their own, that ends where the group does; images are one more dimension of space.
    bool take_group(const WindowIndex &index, int dimension) {
        const std::string axis = as_variable(member_.environment.at(index.pixel));
        if (axis.empty() || !nest_.find_axis(axis) || !pixels_.grouped.empty() || !take_channels(index, dimension)) {
            return false;
        }
        pixels_.grouped = axis;
        pixels_.sharers = index.sharers;
        group_argument_ = index.pixel;
        group_stride_ = index.stride;
        group_count_ = ceil_div(pixels_.buffer.extents[dimension], index.stride);
        return pixels_.channel_count == Extent(index.stride);
    }
    bool take_channels(const WindowIndex &index, int dimension) {
        if (!pixels_.channels.empty() || index.tap.empty() || index.dilation != 1 || !(index.offset == Extent(0)) ||
            !(pixels_.buffer.strides[dimension] == Extent(1))) {
            return false;
        }
        pixels_.channels = axis_of(index.tap);
        pixels_.channel_count =
            index.pixel.empty() || pixels_.channels.empty() ? pixels_.buffer.extents[dimension] : nest_.find_axis(pixels_.channels)->extent;
        return !pixels_.channels.empty();
    }

    /// Rows walk over `pixels` places: as many as there are outputs, or more.
    bool add_space(int dimension, const Extent &outputs, const Extent &pixels) {
        const WindowIndex &index = window_.indices[dimension];
        PixelSpace space;
        space.outputs = outputs;
        space.pixels = pixels;
        if (is_run(dimension)) {
            space.place = member_.environment.at(index.pixel);
            space.size = pixels;
            space.stride = index.stride;
            pixels_.space.push_back(space);
            return true;
        }
        space.place = member_.environment.at(index.pixel) * static_cast<int>(index.stride) + to_halide(index.offset);
        space.tap = index.tap.empty() ? "" : axis_of(index.tap);
        space.dilation = index.dilation;
        space.step = static_cast<std::uint32_t>(index.stride);
        space.size = pixels_.buffer.extents[dimension];
        space.stride = pixels_.buffer.strides[dimension];
        space.lower_corner = index.offset;
        space.upper_corner = (pixels - 1) * Extent(index.stride) + index.offset - (space.size - 1);
        // The copy unit does not walk beyond the tensor's last place; its taps reach there.
        if (space.upper_corner.is_constant() && space.upper_corner.value() > 0) {
            space.lead = static_cast<int>(space.upper_corner.value());
            space.lower_corner = space.lower_corner - space.lead;
            space.upper_corner = 0;
            space.place = space.place - space.lead;
        }
        pixels_.space.push_back(space);
        return index.tap.empty() == space.tap.empty();
    }

    /// A tensor that is a slice of channels may begin anywhere in its pixels.
    void align() {
        const Extent unit = copy_alignment / pixels_.buffer.types[0].bytes(),
                     behind = mod(pixels_.buffer.address_offset + pixels_.offset, unit);
        if (behind.is_constant() && pixels_.grouped.empty()) {
            pixels_.shift = static_cast<int>(behind.value());
            pixels_.offset = pixels_.offset - behind;
        }
    }

    /// The axis of the nest that a reduction variable is, or "".
    std::string axis_of(const std::string &variable) const {
        const std::string axis = as_variable(member_.environment.at(variable));
        return !axis.empty() && nest_.find_axis(axis) ? axis : "";
    }

    bool find_rows() {
        std::vector<Expr> places;
        std::vector<Extent> extents;
        for (int i : rows_) {
            places.push_back(member_.environment.at(arguments_[i]));
            extents.push_back(stage_.extents[i]);
        }
        const auto walk = match_pixel_walk(places, extents, nest_);
        pixels_.rows = walk ? walk->axis : "";
        innermost_ = walk ? walk->innermost : innermost_;
        return walk.has_value();
    }

    const WindowRead &window_;
    const Stage &stage_;
    const Member &member_;
    const Nest &nest_;
    const std::vector<std::string> arguments_ = stage_.func.function().args();
    std::vector<int> rows_;  ///< arguments
    Extent innermost_ = 1;   ///< places that the rows have along the last of them
    std::string group_argument_;
    Extent group_stride_ = 0, group_count_ = 1;
    PixelOperand pixels_;
};

}  // namespace

std::set<std::string> PixelOperand::axes() const {
    std::set<std::string> result{rows, channels};
    for (const PixelSpace &one : space) {
        if (!one.tap.empty()) {
            result.insert(one.tap);
        }
    }
    return result;
}

std::string PixelOperand::obstacle(const SymbolRanges &symbols) const {
    std::vector<Extent> strides{image_stride, buffer.address_offset + offset};
    // What the descriptor's fields hold (CUDA driver API, cuTensorMapEncodeIm2col).
    const std::int64_t furthest = std::vector<int>{32767, 127, 15}.at(space.size() - 1);
    for (const PixelSpace &one : space) {
        strides.push_back(one.stride);
        for (const Extent &corner : {one.lower_corner, one.upper_corner}) {
            const SymbolRange range = corner.bounds(symbols);
            if (range.min < -furthest - 1 || range.max > furthest) {
                return fmt::format("the copy unit cannot reach {} places beyond tensor '{}'", corner.to_string(), buffer.name);
            }
        }
        if (one.step > 8) {
            return fmt::format("the copy unit cannot take every {}th place of tensor '{}'", one.step, buffer.name);
        }
    }
    for (const Extent &stride : strides) {
        const Extent bytes = stride * Extent(buffer.types[0].bytes());
        if (!(mod(bytes, copy_alignment) == Extent(0))) {
            return fmt::format("a stride of tensor '{}' is {} bytes, no multiple of {}", buffer.name, bytes.to_string(), copy_alignment);
        }
    }
    return "";
}

std::optional<std::pair<std::string, std::string>> PixelOperand::window_obstacle(const std::string &tap, std::int64_t taps) const {
    const PixelSpace &innermost = space.front();
    if (innermost.tap != tap || innermost.step != 1) {
        return std::pair("pixels of several taps come together only along the innermost axis, where windows move by one",
                         "name the loop in whose iterations only that axis's taps vary, or remove it");
    }
    const Extent needed = innermost.outputs + (taps - 1) * innermost.dilation;
    if (!(max(innermost.pixels, needed) == innermost.pixels)) {
        return std::pair(fmt::format("windows of neighbouring rows overlap along an axis of {} places", innermost.pixels.to_string()),
                         fmt::format("split that axis by {} before it is fused", needed.to_string()));
    }
    return std::nullopt;
}

void PixelOperand::describe(TensorMapArgument &map, int rows, int channels) const {
    const Extent bytes = buffer.types[0].bytes();
    map.box = {static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(rows)};
    map.element_offset = offset;
    map.sizes = {channel_count + shift};
    PixelWindows windows;
    for (const PixelSpace &one : space) {
        map.sizes.push_back(one.size);
        map.byte_strides.push_back(one.stride * bytes);
        windows.lower_corner.push_back(one.lower_corner);
        windows.upper_corner.push_back(one.upper_corner);
        windows.steps.push_back(one.step);
    }
    map.sizes.push_back(images);
    map.byte_strides.push_back(image_stride * bytes);
    add_windows(map, windows);
}

std::vector<Expr> PixelOperand::coordinates(const Expr &first, const Expr &channel, const Expr &output) const {
    Substitution at{{rows, first}};
    if (!grouped.empty()) {
        at[grouped] = output;
    }
    std::vector<Expr> result{shift > 0 ? channel + shift : channel, substitute_variables(image, at)};
    for (const PixelSpace &one : space) {
        result.push_back(substitute_variables(one.place, at));
        const bool varies = !one.tap.empty() && one.tap != window;
        const Expr tap = varies ? tile::variable(one.tap + "_tap") * static_cast<int>(one.dilation) : Expr(0);
        result.push_back(one.lead > 0 ? tap + one.lead : tap);
    }
    return result;
}

std::optional<PixelOperand> match_pixel_operand(const Expr &factor, const Stage &stage, const Member &member, const Nest &nest,
                                                const tile::Launch &launch) {
    const auto sizes_of = [&](const std::string &name) {
        const tile::Buffer *buffer = launch.find_buffer(name);
        return buffer && buffer->memory == tile::Memory::global && buffer->binding != tile::Buffer::Binding::output ? &buffer->extents
                                                                                                                    : nullptr;
    };
    const auto window = match_window_read(factor, stage.func.function().args(), match_fold(stage.func)->variables, sizes_of, true);
    return window ? PixelMatcher(*window, stage, member, nest, *launch.find_buffer(window->read->name)).run() : std::nullopt;
}

}  // namespace tilewright
