#include "lowering/passes/at_iteration.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

using Halide::Expr;
using namespace tile;

Expr at_iteration(const Launch &launch, const Expr &e, const std::string &loop, const Expr &iteration) {
    Substitution values{{loop, iteration}};
    for (const Axis &axis : launch.axes) {
        if (std::none_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &l) { return l.name == loop; })) {
            continue;
        }
        Expr sum = 0, first = 0;
        for (const Leaf &leaf : axis.leaves) {
            const Expr value = leaf.name == loop ? iteration : leaf.extent == Extent(1) ? Expr(0) : tile::variable(leaf.name);
            sum = sum + value * to_halide(leaf.stride);
            first = leaf.level == Level::vector ? first : first + value * to_halide(leaf.stride);
        }
        if (axis.shift.defined()) {
            sum = sum - axis.shift;
            first = first - axis.shift;
        }
        values[axis.name] = simplify_index(sum, {});
        values[axis.name + ".first"] = simplify_index(first, {});
    }
    return substitute_variables(e, values);
}

}  // namespace tilewright
