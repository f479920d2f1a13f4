// The loop nest of products and windows: a tile of accumulators in registers, the reduction around it, panels of the wide operand packed
// where it does not lie as the vectors want it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/builder.h"
#include "lowering/cpu_schedules/kernel_flow.h"
#include "lowering/fixed_inputs.h"

namespace tilewright {

struct ProductPlace {
    const KeptStage *product = nullptr;
    bool is_anchor = false;
    int wide = -1;  ///< argument of the product that vectors run along
    int tall = -1;  ///< argument along which only the other factor varies; -1 for none
    int lanes = 1;
    std::int64_t columns = 1;  ///< of the tile, a multiple of lanes
    std::int64_t rows = 1;
    const Read *packed = nullptr;           ///< the wide factor, where it is packed
    bool packed_at_load = false;            ///< it is the same in every run: packed whole, once
    int packed_axis = -1;                   ///< its dimension that runs along the wide argument
    std::vector<std::string> loop_of_axis;  ///< of the anchor: names of the loops that other stages are computed at
    int usable_depth = 0;                   ///< leading axes of the anchor that are not tiled
};

/// Names of the product's arguments, outermost first.
std::vector<std::string> arguments_of(const KeptStage &kept);
/// An extent, or what is assumed of a symbolic one.
std::int64_t typical(const Extent &extent);

/// The kernel's product, where its loops are to be tiled: it is the anchor, or the anchor reads it element by element.
std::optional<ProductPlace> find_product(const Kernel &kernel, const KernelFlow &flow, const FixedInputs &fixed);

void schedule_product(const Kernel &kernel, const KernelFlow &flow, ProductPlace &place, ScheduleBuilder &builder);

}  // namespace tilewright
