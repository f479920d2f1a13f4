#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/roll_up.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// The axis of which the loop is a part and which the guard bounds, where blocks or a serial loop go through it in larger steps: most of
/// them lie inside.
const Axis *bounded_axis(const Launch &launch, const std::string &loop, const Expr &condition) {
    const auto *less = condition.as<hi::LT>();
    const auto *variable = less ? less->a.as<hi::Variable>() : nullptr;
    for (const Axis &axis : launch.axes) {
        const auto is_larger_step = [](const Leaf &leaf) {
            return (leaf.level == Level::grid || leaf.level == Level::loop) && !(leaf.extent == Extent(1));
        };
        const bool bounds = variable && (axis.name == variable->name || axis.name + ".first" == variable->name) && !axis.shift.defined();
        if (bounds && std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &leaf) { return leaf.name == loop; }) &&
            std::any_of(axis.leaves.begin(), axis.leaves.end(), is_larger_step)) {
            return &axis;
        }
    }
    return nullptr;
}

bool lies_in(const Launch &launch, const std::string &name, Memory memory) {
    const Buffer *buffer = launch.find_buffer(name);
    return buffer && buffer->memory == memory;
}

/// Whether the steps wait for memory, and for nothing that other threads do.
bool waits_for_loads(const Launch &launch, const Block &block) {
    bool loads = false, concerns_others = false;
    visit_statements(block, [&](const Statement &s) {
        concerns_others = concerns_others || s.as<Barrier>() || s.as<Combine>() || s.as<ScanThreads>() || s.as<Invoke>() || s.as<Exit>();
        for (const std::string &name : written_buffers(s)) {
            concerns_others = concerns_others || lies_in(launch, name, Memory::shared);
        }
        for (const std::string &name : read_buffers(s)) {
            loads = loads || lies_in(launch, name, Memory::global);
        }
    });
    return loads && !concerns_others;
}

void split(const Launch &launch, Block &block) {
    Block result;
    for (Statement &s : block) {
        if (Block *body = body_of(s)) {
            split(launch, *body);
        }
        auto *loop = s.as<For>();
        const bool unrolled = loop && loop->level == Level::unroll && loop->extent.is_constant() && loop->extent.value() > 1;
        const auto *guard = unrolled && loop->body.size() == 1 ? loop->body[0].as<If>() : nullptr;
        if (!guard || !bounded_axis(launch, loop->variable, guard->condition) || !waits_for_loads(launch, loop->body)) {
            result.push_back(std::move(s));
            continue;
        }
        const Expr whole = at_iteration(launch, guard->condition, loop->variable, static_cast<int>(loop->extent.value() - 1));
        For inside = *loop;
        inside.body = guard->body;
        roll_up(launch, *loop);
        result.push_back({If{whole, {Statement{std::move(inside)}}}});
        result.push_back({If{!whole, {std::move(s)}}});
    }
    block = std::move(result);
}

}  // namespace

void whole_rounds(Launch &launch) { split(launch, launch.body); }

}  // namespace tilewright
