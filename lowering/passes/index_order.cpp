#include "lowering/passes/index_order.h"

#include <algorithm>

namespace tilewright {

bool IndexOrder::operator()(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const {
    using Halide::Internal::graph_less_than;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (graph_less_than(a[i], b[i])) {
            return true;
        }
        if (graph_less_than(b[i], a[i])) {
            return false;
        }
    }
    return a.size() < b.size();
}

}  // namespace tilewright
