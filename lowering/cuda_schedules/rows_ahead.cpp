#include "lowering/cuda_schedules/rows_ahead.h"

#include <algorithm>

namespace tilewright {
namespace {

/// Bytes of an element of all tensors that are read row by row.
std::int64_t element_bytes(const ScheduleDraft &draft, const Extent &length) {
    std::int64_t bytes = 0;
    for (const TensorInput &input : draft.algorithm.inputs) {
        const bool is_of_rows = !(product(input.meta.sizes) == length) && input.meta.rank() > 1;
        bytes += is_of_rows ? size_in_bytes(input.meta.dtype) : 0;
    }
    return bytes;
}

}  // namespace

std::optional<RowsAhead> rows_ahead(const ScheduleDraft &draft, const Extent &length, const RowLayout &layout, std::int64_t wanted,
                                    std::int64_t resident_threads) {
    constexpr std::int64_t for_exchanges = 1024;  // bytes
    const std::int64_t slot = element_bytes(draft, length) * layout.vector * layout.steps * layout.threads;
    const GpuFacts &facts = draft.facts;
    if (slot == 0 || !layout.in_registers || layout.rows_per_block > 1) {
        return std::nullopt;
    }
    const std::int64_t stages = std::min(wanted + 1, (facts.shared_per_block - for_exchanges) / slot);
    if (stages < std::min<std::int64_t>(wanted + 1, 2)) {
        return std::nullopt;
    }
    const std::int64_t by_memory = facts.shared_per_multiprocessor / (stages * slot + for_exchanges + facts.shared_reserved_per_block);
    const std::int64_t most =
        std::max<std::int64_t>(draft.choice.min_blocks > 0 ? draft.choice.min_blocks : resident_threads / layout.threads, 1);
    return RowsAhead{stages, std::clamp<std::int64_t>(by_memory, 1, most)};
}

}  // namespace tilewright
