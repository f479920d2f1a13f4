// Places a plan's intermediates in one arena, by lifetime: a tensor's bytes serve others once its last reader has run.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.h"

namespace tilewright {

/// For one binding of the symbols. Offsets and sizes are bytes, multiples of 256.
struct MemoryLayout {
    std::vector<std::int64_t> offsets;               ///< of each of the plan's buffers; -1 for those outside the arena
    std::vector<std::vector<std::int64_t>> scratch;  ///< for each step, the offset of each of its ScratchArguments, in order
    std::int64_t arena_bytes = 0;
};
/// `persistent` buffers (computed once at load) stay outside the arena; empty: none.
MemoryLayout plan_memory(const Plan &plan, const SymbolValues &symbols, const std::vector<bool> &persistent = {});

/// Bytes from the first to the last element of a tensor with these strides; 0 where it has no elements.
std::int64_t span_bytes(DType dtype, const std::vector<std::int64_t> &sizes, const std::vector<std::int64_t> &strides);
std::vector<std::int64_t> evaluate(const std::vector<Extent> &extents, const SymbolValues &symbols);

/// Which steps depend on weights alone (and on no symbol), so that they need to run only once; and the intermediates that they write.
struct ConstantSteps {
    std::vector<bool> steps;
    std::vector<bool> buffers;
};
ConstantSteps find_constant_steps(const Plan &plan);

/// For each step, which call of a kernel it belongs to, counted from 0. The launches of one call stand together and hand each other scratch
/// memory: equal slots of a call are one piece, from the first step that names it to the last, zeroed before the first.
std::vector<int> kernel_calls(const Plan &plan);

/// Every buffer that a step reads or writes.
std::vector<int> buffers_of(const Step &step);
std::vector<int> buffers_written_by(const Step &step);

}  // namespace tilewright
