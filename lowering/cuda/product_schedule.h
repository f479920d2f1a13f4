// Schedules of products on the matrix unit: which kernels can have one, and what sizes suggest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/cuda/gpu_facts.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// A kernel whose one product multiplies float16 or bfloat16 values, tensors that the bulk copy unit can fetch or computed from them, or whose products share their left
/// operand, and whose outputs stand over the products' own axes.
struct MatrixProduct {
    std::vector<std::string> products;  ///< stages
    std::vector<std::string> outputs; ///< stages that are stored, over the product's axes; the first is the anchor
    std::vector<int> rows;            ///< the anchor's arguments that only the left operand varies along, one after another; none for a single row
    int columns = -1;                 ///< the argument that only the right operand varies along
    Extent m = 1, n = 1, k = 1, batch = 1;
    bool computed_rows = false, computed_columns = false;  ///< the operand is computed from what is fetched: a conversion, a scale
    int row_bytes = 2, column_bytes = 2;                   ///< of an element that is fetched
};
std::optional<MatrixProduct> match_matrix_product(const Kernel &kernel, const GpuFacts &facts);

/// One choice of tile and pipeline. The unit's tile is `m` by `n`; turned, its rows are the product's columns.
struct ProductTile {
    int m = 128, n = 256, warpgroups = 2, stages = 4, raster = 8;
    int parts = 1;        ///< blocks that share a tile's terms
    bool turned = false;
    bool cluster = true;  ///< the parts are added up in a cluster, else in a second pass
};
/// Every tile that fits the product, the most promising first.
std::vector<ProductTile> product_tiles(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts);
Directives product_schedule(const MatrixProduct &product, const ProductTile &tile);

}  // namespace tilewright
