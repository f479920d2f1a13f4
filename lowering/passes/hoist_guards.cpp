#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;

bool mentions_loop(const Launch &launch, const Expr &condition, const std::string &loop) {
    for (std::string name : variables_of(condition)) {
        bool first = false;
        if (name.size() > 6 && name.substr(name.size() - 6) == ".first") {
            name.resize(name.size() - 6);
            first = true;
        }
        if (name == loop) {
            return true;
        }
        for (const Axis &axis : launch.axes) {
            const bool has = std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &l) { return l.name == loop && !(first && l.level == Level::vector); });
            if (has && axis.name == name) {
                return true;
            }
        }
    }
    return contains_read(condition);
}

/// d < extent asks the same of a whole vector where its width divides the extent: the first element decides.
Expr of_first(const Launch &launch, const Expr &condition) {
    const auto *less = condition.as<Halide::Internal::LT>();
    const auto *variable = less ? less->a.as<Halide::Internal::Variable>() : nullptr;
    if (!variable) {
        return condition;
    }
    for (const Axis &axis : launch.axes) {
        if (axis.name != variable->name || axis.leaves.empty() || axis.leaves.back().level != Level::vector || !axis.leaves.back().extent.is_constant()) {
            continue;
        }
        const Extent width = axis.leaves.back().extent;
        if (mod(axis.extent, width) == Extent(0)) {
            return tile::variable(axis.name + ".first") < less->b;
        }
    }
    return condition;
}

/// Guards of a loop's whole body that do not depend on it stand around it instead, one inside the other.
void hoist_from(const Launch &launch, Statement &s) {
    auto *loop = s.as<For>();
    auto *guard = loop && loop->body.size() == 1 ? loop->body[0].as<If>() : nullptr;
    if (!guard || mentions_loop(launch, guard->condition, loop->variable)) {
        return;
    }
    If outer{guard->condition, {}};
    Block inner = std::move(guard->body);
    loop->body = std::move(inner);
    hoist_from(launch, s);
    outer.body.push_back(std::move(s));
    s = Statement{std::move(outer)};
}

void hoist(const Launch &launch, Block &block) {
    for (Statement &s : block) {
        if (auto *guard = s.as<If>()) {
            guard->condition = of_first(launch, guard->condition);
        }
        if (Block *body = body_of(s)) {
            hoist(launch, *body);
        }
        hoist_from(launch, s);
    }
}

/// Bodies that were merged may hold neighbours under one condition again.
void merge_inside(Block &block) {
    Block merged;
    for (Statement &s : block) {
        auto *guard = s.as<If>();
        auto *before = merged.empty() ? nullptr : merged.back().as<If>();
        if (guard && before && Halide::Internal::graph_equal(guard->condition, before->condition) && !contains_read(guard->condition)) {
            before->body.insert(before->body.end(), std::make_move_iterator(guard->body.begin()), std::make_move_iterator(guard->body.end()));
            continue;
        }
        merged.push_back(std::move(s));
    }
    block = std::move(merged);
    for (Statement &s : block) {
        if (Block *body = body_of(s)) {
            merge_inside(*body);
        }
    }
}

}  // namespace

void hoist_guards(Launch &launch) {
    hoist(launch, launch.body);
    merge_inside(launch.body);
    hoist(launch, launch.body);
}

}  // namespace tilewright
