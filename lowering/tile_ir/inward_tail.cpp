#include "lowering/tile_ir/inward_tail.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"

namespace tilewright::tile {

Expr inward_shift(const Axis &axis, std::int64_t lanes) {
    const Expr end = sum_of_leaves(axis, true) + static_cast<int>(lanes);
    return Halide::Internal::Max::make(end - to_halide(axis.extent), Expr(0));
}

bool moves_inwards(const Axis &axis) {
    return axis.shift.defined() &&
           std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &leaf) { return mentions(axis.shift, leaf.name); });
}

}  // namespace tilewright::tile
