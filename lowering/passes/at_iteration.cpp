#include "lowering/passes/at_iteration.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

using Halide::Expr;
using namespace tile;

namespace {

/// With variables replaced; `first`: of the vector that it is in.
Expr sum_of_leaves(const Axis &axis, bool first, const Substitution &values) {
    return simplify_index(substitute_variables(tile::sum_of_leaves(axis, first), values), {});
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
