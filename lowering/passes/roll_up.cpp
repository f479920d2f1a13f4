#include "lowering/passes/roll_up.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

bool is_held(const Launch &launch, const std::string &name) {
    const Buffer *buffer = launch.find_buffer(name);
    return buffer && buffer->memory == Memory::registers;
}

/// Whether the steps are short, and better wait together, or choose registers, which takes constants.
bool is_written_out(const Launch &launch, const For &loop) {
    constexpr int few_reads = 8;
    bool found = false;
    int reads = 0;
    const auto check = [&](const std::string &name, const std::vector<Expr> &place) {
        found = found || (is_held(launch, name) && std::any_of(place.begin(), place.end(), [&](const Expr &e) {
                              return !at_iteration(launch, e, loop.variable, Expr(0)).same_as(e);
                          }));
    };
    visit_statements(loop.body, [&](const Statement &s) {
        if (const auto *store = s.as<Store>()) {
            check(store->buffer, store->indices);
        } else if (const auto *fold = s.as<tile::Fold>()) {
            check(fold->accumulator, fold->place);
        }
        for (const Expr &e : expressions_of(s)) {
            visit_reads(e, [&](const hi::Call *call) {
                ++reads;
                check(call->name, call->args);
            });
        }
    });
    return found || reads <= few_reads;
}

}  // namespace

void roll_up(const Launch &launch, For &loop) {
    if (!is_written_out(launch, loop)) {
        loop.level = Level::loop;
        loop.rolled = true;
    }
}

}  // namespace tilewright
