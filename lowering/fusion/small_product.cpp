#include "lowering/fusion/small_product.h"

namespace tilewright {

bool is_small_product(const Stage &stage, const SymbolRanges &symbols) {
    constexpr std::int64_t most_terms = 1 << 20;  // about 2 us of loads from L2
    return (product(stage.extents) * product(stage.reduction_extents)).bounds(symbols).max <= most_terms;
}

}  // namespace tilewright
