// Schedules of products on the matrix unit: what sizes suggest.
#pragma once

#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/cuda_schedules/matrix_product.h"

namespace tilewright {

/// One choice of tile and pipeline. The unit's tile is `m` by `n`; turned, its rows are the product's columns.
struct ProductTile {
    int m = 128, n = 256, warpgroups = 2, stages = 4, raster = 8;
    int parts = 1;  ///< blocks that share a tile's terms
    bool turned = false;
    bool cluster = true;       ///< the parts are added up in a cluster, else in a second pass
    bool takes_turns = false;  ///< one warpgroup multiplies while others finish their parts
    bool keeps_right = false;  ///< shared memory holds the right operand whole, for all tiles of a block
    bool windows = false;      ///< of a convolution: pixels come once for the taps along the innermost axis
    int row_blocks = 1;        ///< blocks of a cluster that hold the columns of rows that are reduced
    bool persistent = true;
    int residents = 1;  ///< blocks that a multiprocessor holds at once
};
/// Tiles that fit the product, the most promising first, `most` of them.
std::vector<ProductTile> product_tiles(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts,
                                       std::size_t most = 24);
Directives product_schedule(const MatrixProduct &product, const ProductTile &tile);

}  // namespace tilewright
