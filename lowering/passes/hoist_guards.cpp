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
            const bool has = std::any_of(axis.leaves.begin(), axis.leaves.end(),
                                         [&](const Leaf &l) { return l.name == loop && !(first && l.level == Level::vector); });
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
        if (axis.name != variable->name || axis.leaves.empty() || axis.leaves.back().level != Level::vector ||
            !axis.leaves.back().extent.is_constant()) {
            continue;
        }
        const Extent width = axis.leaves.back().extent;
        if (mod(axis.extent, width) == Extent(0)) {
            return tile::variable(axis.name + ".first") < less->b;
        }
    }
    return condition;
}

Statement guarded_by(const std::vector<Expr> &conditions, Statement s) {
    for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition) {
        If guard{*condition, {}};
        guard.body.push_back(std::move(s));
        s = Statement{std::move(guard)};
    }
    return s;
}

/// Guards of a loop's whole body that do not depend on it stand around it instead, whatever order they stood in.
void hoist_from(const Launch &launch, Statement &s) {
    auto *loop = s.as<For>();
    std::vector<Expr> inside, outside;
    for (const Block *body = loop ? &loop->body : nullptr; body && body->size() == 1 && (*body)[0].as<If>();) {
        const auto *guard = (*body)[0].as<If>();
        (mentions_loop(launch, guard->condition, loop->variable) ? inside : outside).push_back(guard->condition);
        body = &guard->body;
    }
    if (outside.empty()) {
        return;
    }
    Block innermost = std::move(loop->body);
    while (innermost.size() == 1 && innermost[0].as<If>()) {
        Block inner = std::move(innermost[0].as<If>()->body);
        innermost = std::move(inner);
    }
    if (inside.empty()) {
        loop->body = std::move(innermost);
    } else {
        If last{inside.back(), std::move(innermost)};
        inside.pop_back();
        loop->body.clear();
        loop->body.push_back(guarded_by(inside, Statement{std::move(last)}));
    }
    s = guarded_by(outside, std::move(s));
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
            before->body.insert(before->body.end(), std::make_move_iterator(guard->body.begin()),
                                std::make_move_iterator(guard->body.end()));
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
