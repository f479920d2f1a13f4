#include "lowering/passes/at_iteration.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

using Halide::Expr;
using namespace tile;

namespace {

/// An axis as a sum of its leaves, `first`: of the vector that it is in, with variables replaced.
Expr sum_of_leaves(const Axis &axis, bool first, const Substitution &values) {
    Expr sum = 0;
    for (const Leaf &leaf : axis.leaves) {
        if (leaf.extent == Extent(1) || (first && leaf.level == Level::vector)) {
            continue;
        }
        sum = sum + tile::variable(leaf.name) * to_halide(leaf.stride);
    }
    return simplify_index(substitute_variables(axis.shift.defined() ? sum - axis.shift : sum, values), {});
}

}  // namespace

Expr at_iteration(const Launch &launch, const Expr &e, const std::string &loop, const Expr &iteration) {
    Substitution values{{loop, iteration}};
    const auto add = [&](const Axis &axis) {
        const Substitution known = values;
        values[axis.name] = sum_of_leaves(axis, false, known);
        values[axis.name + ".first"] = sum_of_leaves(axis, true, known);
    };
    for (const Axis &axis : launch.axes) {
        if (std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &l) { return l.name == loop; })) {
            add(axis);
        }
    }
    for (const Axis &axis : launch.axes) {  // whose vectors begin elsewhere in another iteration
        if (!values.count(axis.name) && axis.shift.defined() && !substitute_variables(axis.shift, values).same_as(axis.shift)) {
            add(axis);
        }
    }
    return substitute_variables(e, values);
}

}  // namespace tilewright
