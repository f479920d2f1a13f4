#include "lowering/nests/axis_shifts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/tile_ir/inward_tail.h"

namespace tilewright {
namespace {

using Halide::Expr;

std::set<std::string> names_in(const Expr &e) {
    const std::vector<std::string> names = variables_of(e);
    return {names.begin(), names.end()};
}

/// index * stride, modulo `unit`. Loops that take every n-th row, where n rows begin alike, have no part in it.
Expr part_of_begin(const Nest &nest, const Expr &index, std::int64_t stride, int unit) {
    const tile::Axis *axis = nest.find_axis(as_variable(index));
    const auto drops_out = [&](const tile::Leaf &leaf) {
        return !(leaf.extent == Extent(1)) && leaf.stride.is_constant() && leaf.stride.value() % unit * (stride % unit) % unit == 0;
    };
    if (!axis || axis->shift.defined() || std::none_of(axis->leaves.begin(), axis->leaves.end(), drops_out)) {
        return index * static_cast<int>(stride % unit);
    }
    Expr sum = 0;
    for (const tile::Leaf &leaf : axis->leaves) {
        if (!drops_out(leaf) && !(leaf.extent == Extent(1))) {
            sum = sum + tile::variable(leaf.name) * to_halide(leaf.stride * Extent(stride % unit));
        }
    }
    return sum;
}

/// Where the row begins in memory, modulo `unit`; undefined where it does not lie along the axis or that is not known.
Expr begin_of_row(const Nest &nest, const TensorMeta &meta, const std::vector<Expr> &indices, const std::string &axis, int unit) {
    Expr place = 0;
    bool along = false;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const Extent &stride = meta.strides[i];
        if (stride == Extent(1) && as_variable(indices[i]) == axis) {
            along = true;
        } else if (!stride.is_constant() || mentions(indices[i], axis)) {
            return Expr();
        } else {
            place = place + part_of_begin(nest, indices[i], stride.value(), unit);
        }
    }
    return along ? simplify_index(place % unit, nest.ranges) : Expr();
}

/// Whether a thread goes along the axis by a loop of which `moves` names a variable.
bool moves_in_thread(const tile::Axis &axis, const std::set<std::string> &moves) {
    return std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const tile::Leaf &leaf) {
        const bool in_thread = leaf.level != tile::Level::grid && leaf.level != tile::Level::cluster;
        return in_thread && !(leaf.extent == Extent(1)) && (moves.count(leaf.name) || moves.count(axis.name));
    });
}

}  // namespace

Expr axis_shift(const Algorithm &algorithm, const Nest &nest, const std::map<std::string, std::vector<PlacedRead>> &reads,
                const std::string &axis, int unit) {
    for (const TensorOutput &output : algorithm.outputs) {
        const Member *member = nest.find_member(stage_index(algorithm, output.stage));
        if (member && member->places.size() == output.meta.strides.size()) {
            if (const Expr shift = begin_of_row(nest, output.meta, member->places, axis, unit); shift.defined()) {
                return shift;
            }
        }
    }
    for (const TensorInput &input : algorithm.inputs) {
        const auto found = reads.find(input.name());
        for (const PlacedRead &read : found == reads.end() ? std::vector<PlacedRead>() : found->second) {
            if (read.indices.size() != input.meta.strides.size()) {
                continue;
            }
            if (const Expr shift = begin_of_row(nest, input.meta, read.indices, axis, unit); shift.defined()) {
                return shift;
            }
        }
    }
    return nest.axes.size() == 1 ? Expr(0) : Expr();  // an axis over all elements begins where they do
}

void refuse_moving_columns(const Nest &nest, const Algorithm &algorithm, const ScheduledStage &anchor) {
    for (const tile::Axis &axis : nest.axes) {
        if (!axis.shift.defined() || tile::moves_inwards(axis)) {
            continue;
        }
        const std::set<std::string> moves = names_in(axis.shift);
        for (const Member &member : nest.members) {
            const bool sums_moving = std::any_of(nest.axes.begin(), nest.axes.end(), [&](const tile::Axis &reduced) {
                return member.reduction_axes.count(reduced.name) && moves_in_thread(reduced, moves);
            });
            if (member.axes.count(axis.name) && sums_moving) {
                const ScheduleFlag *flag = anchor.find_flag("align", axis.name);
                schedule_error(flag ? flag->directive.location : anchor.at_location, anchor.name,
                               fmt::format("'{}' sums over rows, in which aligned vectors begin at different places",
                                           algorithm.stages[member.stage].name()),
                               "let a block take every n-th row, where n rows begin alike: split(d0, row_i, rows, blocks) with a "
                               "multiple of n blocks, then reorder(row_i, rows)");
            }
        }
    }
}

}  // namespace tilewright
