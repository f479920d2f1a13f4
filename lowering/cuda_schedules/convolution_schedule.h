// Schedules of convolutions on the matrix unit: which kernels are one, and what sizes suggest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowering/cuda_schedules/product_schedule.h"

namespace tilewright {

/// A kernel whose one product multiplies pixels that windows read by weights, both float16 or bfloat16 with channels innermost, and whose
/// outputs stand over the product's own axes.
struct Convolution {
    /// Along the innermost argument of the pixels: neighbours whose windows overlap.
    struct Window {
        std::string tensor;  ///< of the pixels
        std::string loop;    ///< in each of whose iterations the product is at all of the window's taps
        std::int64_t taps = 1;
        std::int64_t halo = 0;  ///< places of a window beyond the first
        std::int64_t outputs = 1;
    };
    std::string product;               ///< the stage
    std::vector<std::string> outputs;  ///< stages that are stored, over the product's axes; the first is the anchor
    std::vector<int> pixels;           ///< arguments, images first
    int channels = -1;                 ///< the argument that the weights alone vary along, or whose groups share pixels
    std::int64_t group = 0;            ///< channels that share pixels; 0 where all do
    std::string right;                 ///< the tensor of the product's right operand
    std::string depth;                 ///< the reduction variable that both tensors run along
    std::optional<Window> window;
    bool pixels_innermost = false;  ///< the output runs along pixels rather than channels: pixels are the product's columns
    Extent m = 1, n = 1, k = 1;     ///< rows, columns, terms
    Extent steps = 1;               ///< of 64 channels at one tap
};
std::optional<Convolution> match_convolution(const Kernel &kernel, const GpuFacts &facts);

/// Every tile that fits, the most promising first.
std::vector<ProductTile> convolution_tiles(const Convolution &convolution, const SymbolRanges &symbols, const GpuFacts &facts);
Directives convolution_schedule(const Convolution &convolution, const ProductTile &tile);

}  // namespace tilewright
