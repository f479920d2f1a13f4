#include "lowering/passes/surroundings.h"

#include <algorithm>

namespace tilewright {

using namespace tile;

bool same_surroundings(const std::vector<const Statement *> &a, const std::vector<const Statement *> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Statement *x, const Statement *y) {
        const auto *loop = x->as<For>(), *other_loop = y->as<For>();
        if (loop && other_loop) {
            return loop->variable == other_loop->variable && loop->extent == other_loop->extent;
        }
        const auto *guard = x->as<If>(), *other_guard = y->as<If>();
        return guard && other_guard && Halide::Internal::graph_equal(guard->condition, other_guard->condition);
    });
}

}  // namespace tilewright
