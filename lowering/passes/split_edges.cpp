#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/roll_up.h"
#include "lowering/tile_ir/inward_tail.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;

/// The axis of a vector loop that asks for each element: it is shifted, or no whole number of vectors long.
const Axis *axis_with_edges(const Launch &launch, const For &loop) {
    const auto *guard = loop.body.size() == 1 ? loop.body[0].as<If>() : nullptr;
    if (!guard || !loop.extent.is_constant()) {
        return nullptr;
    }
    const auto *less = guard->condition.as<Halide::Internal::LT>();
    for (const Axis &axis : launch.axes) {
        const bool along = !axis.leaves.empty() && axis.leaves.back().name == loop.variable && axis.leaves.back().level == Level::vector;
        const bool bounds = less && as_variable(less->a) == axis.name && !(mod(axis.extent, loop.extent) == Extent(0));
        if (along && !moves_inwards(axis) && (axis.shift.defined() || bounds)) {
            return &axis;
        }
    }
    return nullptr;
}

/// Whether the unrolled loop's step alone says that a whole vector lies inside: true at its middle steps, an undefined Expr where at none.
Expr inside_by_step(const Axis &axis, std::int64_t lanes, const std::string &step) {
    std::int64_t others = 0, stride = 0, steps = 0;
    for (const Leaf &leaf : axis.leaves) {
        if (!leaf.extent.is_constant() || !leaf.stride.is_constant()) {
            return Expr();
        }
        if (leaf.name == step && leaf.level == Level::unroll) {
            stride = leaf.stride.value();
            steps = leaf.extent.value();
        } else if (leaf.level != Level::vector) {
            others += (leaf.extent.value() - 1) * leaf.stride.value();
        }
    }
    if (stride <= 0 || !axis.extent.is_constant()) {
        return Expr();
    }
    const std::int64_t furthest_shift = axis.shift.defined() ? lanes - 1 : 0;
    const std::int64_t first = (furthest_shift + stride - 1) / stride;
    const std::int64_t last = std::min((axis.extent.value() - lanes - others) / stride, steps - 1);
    return axis.extent.value() < lanes + others || last < first
               ? Expr()
               : tile::variable(step) >= static_cast<int>(first) && tile::variable(step) <= static_cast<int>(last);
}

/// Where the thread's vectors lie inside, however far they are shifted.
Expr inside_everywhere(const Axis &axis, std::int64_t lanes) {
    Axis unshifted = axis;
    unshifted.shift = Expr();
    const Expr place = sum_of_leaves(unshifted, true);
    const Expr ends_inside = place + static_cast<int>(lanes) <= to_halide(axis.extent);
    return axis.shift.defined() ? place >= static_cast<int>(lanes - 1) && ends_inside : ends_inside;
}

For whole_vector(const For &loop) {
    For whole{loop.variable, loop.extent, loop.level, loop.body[0].as<If>()->body};
    whole.whole = true;
    return whole;
}

/// Unrolled lines whose vectors lie inside, whatever the shift of each, ask once, so that they share what they load and compute. Undefined
/// where the loop is none of these.
Expr lines_inside(const Launch &launch, const For &lines) {
    const auto *loop = lines.body.size() == 1 && lines.level == Level::unroll ? lines.body[0].as<For>() : nullptr;
    const Axis *axis = loop ? axis_with_edges(launch, *loop) : nullptr;
    const bool of_lines =
        axis && std::none_of(axis->leaves.begin(), axis->leaves.end(), [&](const Leaf &leaf) { return leaf.name == lines.variable; });
    // Where the shift is the same at each line, each vector may say exactly whether it lies inside.
    const bool is_common =
        of_lines && (!axis->shift.defined() || !at_iteration(launch, axis->shift, lines.variable, 0).same_as(axis->shift));
    return is_common ? inside_everywhere(*axis, loop->extent.value()) : Expr();
}

/// `step`: the unrolled loop around the block; empty where there is none.
void split(const Launch &launch, Block &block, const std::string &step) {
    Block result;
    for (Statement &s : block) {
        if (auto *lines = s.as<For>()) {
            if (const Expr inside = lines_inside(launch, *lines); inside.defined()) {
                For together = *lines;
                together.body = {Statement{whole_vector(*lines->body[0].as<For>())}};
                result.push_back({If{inside, {Statement{std::move(together)}}}});
                split(launch, lines->body, "");
                roll_up(launch, *lines);
                result.push_back({If{!inside, {std::move(s)}}});
                continue;
            }
        }
        if (Block *body = body_of(s)) {
            const auto *around = s.as<For>();
            split(launch, *body, around && around->level == Level::unroll ? around->variable : step);
        }
        auto *loop = s.as<For>();
        const Axis *axis = loop ? axis_with_edges(launch, *loop) : nullptr;
        if (!axis) {
            result.push_back(std::move(s));
            continue;
        }
        const Expr first = tile::variable(axis->name + ".first");
        const Expr by_step = inside_by_step(*axis, loop->extent.value(), step);
        const Expr ends_inside = first + static_cast<int>(loop->extent.value()) <= to_halide(axis->extent);
        const Expr by_place = axis->shift.defined() ? first >= 0 && ends_inside : ends_inside;
        // Unrolled, the middle steps have one path.
        const Expr inside = by_step.defined() ? by_step || by_place : by_place;
        result.push_back({If{inside, {Statement{whole_vector(*loop)}}}});
        roll_up(launch, *loop);
        result.push_back({If{!inside, {std::move(s)}}});
    }
    block = std::move(result);
}

}  // namespace

void split_edges(Launch &launch) { split(launch, launch.body, ""); }

}  // namespace tilewright
