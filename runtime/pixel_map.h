// Maps of pixels: descriptors by which the bulk copy unit walks over the windows of a convolution (cuTensorMapEncodeIm2col).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan.h"

namespace tilewright {

/// Of each dimension of space, innermost first: where windows begin and end, and how far apart neighbouring pixels are.
struct PixelWindows {
    std::vector<Extent> lower_corner;  ///< the first place
    std::vector<Extent> upper_corner;  ///< the last place less that of the tensor's last element
    std::vector<std::uint32_t> steps;
};

/// Makes `map` one of pixels. Its dimensions are channels, one to three of space, images; a copy takes box[0] channels of box[1] pixels,
/// which run from image to image. Corners are kept behind the sizes, steps behind the box.
void add_windows(TensorMapArgument &map, const PixelWindows &windows);

/// Empty where the map is one of tiles.
std::optional<PixelWindows> windows_of(const TensorMapArgument &map);

/// Dimensions of the tensor that the map describes.
std::size_t rank_of(const TensorMapArgument &map);

}  // namespace tilewright
