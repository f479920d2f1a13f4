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

void split(const Launch &launch, Block &block) {
    Block result;
    for (Statement &s : block) {
        if (Block *body = body_of(s)) {
            split(launch, *body);
        }
        auto *loop = s.as<For>();
        const Axis *axis = loop ? shifted_axis(launch, loop->variable) : nullptr;
        const auto *guard = axis && loop->body.size() == 1 ? loop->body[0].as<If>() : nullptr;
        if (!guard || !loop->extent.is_constant()) {
            result.push_back(std::move(s));
            continue;
        }
        const Expr first = tile::variable(axis->name + ".first");
        const Expr inside = first >= 0 && first + static_cast<int>(loop->extent.value()) <= to_halide(axis->extent);
        For whole{loop->variable, loop->extent, loop->level, guard->body};
        whole.whole = true;
        result.push_back({If{inside, {Statement{std::move(whole)}}}});
        result.push_back({If{!inside, {std::move(s)}}});
    }
    block = std::move(result);
}

}  // namespace

void split_edges(Launch &launch) { split(launch, launch.body); }

}  // namespace tilewright
