#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;

const Axis *shifted_axis(const Launch &launch, const std::string &lane) {
    for (const Axis &axis : launch.axes) {
        if (axis.shift.defined() && !axis.leaves.empty() && axis.leaves.back().name == lane && axis.leaves.back().level == Level::vector) {
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
    const std::int64_t furthest_shift = lanes - 1;
    const std::int64_t first = (furthest_shift + stride - 1) / stride;
    const std::int64_t last = std::min((axis.extent.value() - lanes - others) / stride, steps - 1);
    return axis.extent.value() < lanes + others || last < first
               ? Expr()
               : tile::variable(step) >= static_cast<int>(first) && tile::variable(step) <= static_cast<int>(last);
}

/// `step`: the unrolled loop around the block; empty where there is none.
void split(const Launch &launch, Block &block, const std::string &step) {
    Block result;
    for (Statement &s : block) {
        if (Block *body = body_of(s)) {
            const auto *around = s.as<For>();
            split(launch, *body, around && around->level == Level::unroll ? around->variable : step);
        }
        auto *loop = s.as<For>();
        const Axis *axis = loop ? shifted_axis(launch, loop->variable) : nullptr;
        const auto *guard = axis && loop->body.size() == 1 ? loop->body[0].as<If>() : nullptr;
        if (!guard || !loop->extent.is_constant()) {
            result.push_back(std::move(s));
            continue;
        }
        const Expr first = tile::variable(axis->name + ".first");
        const Expr by_step = inside_by_step(*axis, loop->extent.value(), step);
        const Expr by_place = first >= 0 && first + static_cast<int>(loop->extent.value()) <= to_halide(axis->extent);
        // Unrolled, the middle steps have one path.
        const Expr inside = by_step.defined() ? by_step || by_place : by_place;
        For whole{loop->variable, loop->extent, loop->level, guard->body};
        whole.whole = true;
        result.push_back({If{inside, {Statement{std::move(whole)}}}});
        result.push_back({If{!inside, {std::move(s)}}});
    }
    block = std::move(result);
}

}  // namespace

void split_edges(Launch &launch) { split(launch, launch.body, ""); }

}  // namespace tilewright
