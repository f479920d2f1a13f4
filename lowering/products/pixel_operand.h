// An operand of a product on the matrix unit that windows read: the copy unit walks over the output's pixels and sees the tensor from one
// tap.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

/// One dimension of space.
struct PixelSpace {
    Halide::Expr place;  ///< of the first tap, over the nest's axes
    std::string tap;     ///< axis; "" for none
    Extent pixels = 1;   ///< that the rows walk over: more than the output has where its places are padded
    Extent outputs = 1;
    std::int64_t dilation = 1;
    std::uint32_t step = 1;  ///< between neighbouring pixels
    Extent size = 1, stride = 1, lower_corner = 0, upper_corner = 0;
    int lead = 0;  ///< places that the walk begins earlier, which each tap gives back
};

/// A tensor of channels, places and images. Its rows are the pixels of the output in order, one axis of the nest.
struct PixelOperand {
    tile::Buffer buffer;
    std::string rows, channels;  ///< axes
    Extent offset = 0;           ///< elements, of what the descriptor begins at
    Extent channel_count, images = 1, image_stride = 0;
    int shift = 0;                  ///< channels in front of the first: the descriptor begins at an aligned place
    Halide::Expr image;             ///< of a row
    std::vector<PixelSpace> space;  ///< innermost first
    std::string grouped;            ///< the axis whose outputs read the channels of their group alone; "" for none. Groups stand for images
    std::int64_t sharers = 1;       ///< outputs of a group
    std::string window;     ///< the tap all of whose places a copy brings, each pixel once: they overlap along the rows; "" for none
    std::int64_t taps = 1;  ///< of the window

    /// Rows of a copy beyond those of the tile: the last pixels' windows.
    std::int64_t halo() const { return window.empty() ? 0 : (taps - 1) * space.front().dilation; }
    /// Why a copy cannot bring all places of `tap` together, with what mends it; empty where it can.
    std::optional<std::pair<std::string, std::string>> window_obstacle(const std::string &tap, std::int64_t taps) const;
    /// The axes that it varies along.
    std::set<std::string> axes() const;
    /// What the copy unit cannot do, in words; empty where it can.
    std::string obstacle(const SymbolRanges &symbols) const;
    /// Dimensions, strides and corners of the descriptor for copies of so many rows of so many channels.
    void describe(TensorMapArgument &map, int rows, int channels) const;
    /// The copy unit's coordinates and taps from row `first` and channel `channel` on, each axis's tap in AXIS_tap. Outputs begin at
    /// `output` along the grouped axis.
    std::vector<Halide::Expr> coordinates(const Halide::Expr &first, const Halide::Expr &channel, const Halide::Expr &output) const;
};

/// `factor` is an expression over the stage's own arguments and reduction variables and the launch's buffers. Empty where it is no read
/// through windows with channels innermost, or its pixels are not all along one axis in order.
std::optional<PixelOperand> match_pixel_operand(const Halide::Expr &factor, const Stage &stage, const Member &member, const Nest &nest,
                                                const tile::Launch &launch);

}  // namespace tilewright
