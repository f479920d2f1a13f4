// Which kernels are products for the matrix unit.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// A kernel whose one product multiplies elements of the matrix unit (unit_element.h; float32 keeps its precision), tensors that the bulk
/// copy unit can fetch or computed from them, or whose products share their left operand, and whose outputs stand over the products' own
/// axes. Reductions along the rows of one product may stand between.
struct MatrixProduct {
    std::vector<std::string> products;        ///< stages
    std::vector<std::string> outputs;         ///< stages that are stored, over the product's axes; the first is the anchor
    std::vector<std::string> row_reductions;  ///< stages that reduce along the product's rows
    std::vector<std::string> kept;            ///< values that those and later stages read, at each place
    std::vector<int> rows;  ///< the anchor's arguments that only the left operand varies along, one after another; none for a single row
    int columns = -1;       ///< the argument that only the right operand varies along
    Extent m = 1, n = 1, k = 1, batch = 1;
    bool computed_rows = false, computed_columns = false;  ///< the operand is computed from what is fetched: a conversion, a scale
    int bytes = 2;                                         ///< of an element that is multiplied
    bool sums_apart = false;                               ///< the unit would lose bits of the sums
    bool ragged = false;                                   ///< a stored row begins where the copy unit cannot store: threads store it
    double row_bytes = 2, column_bytes = 2;                ///< of an element that is fetched
};
/// Whether every output is pointwise over the products' own axes, which are read at the arguments alone; adds the outputs' stages.
bool collect_outputs(const Kernel &kernel, const std::set<std::string> &products, std::vector<std::string> &outputs);
std::optional<MatrixProduct> match_matrix_product(const Kernel &kernel, const GpuFacts &facts);

}  // namespace tilewright
