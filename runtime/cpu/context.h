// What one run of a plan on the CPU needs, prepared once for a binding of the symbols and reused: arena, Halide buffers, argument lists.
#pragma once

#include <HalideRuntime.h>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cpu/loader.h"
#include "runtime/cpu/math.h"
#include "runtime/executor.h"
#include "runtime/memory_plan.h"

namespace tilewright {

/// A plan's tensors for one binding of its symbols.
struct CpuShape {
    CpuShape(const Plan &plan, SymbolValues values, const std::vector<bool> &persistent);

    SymbolValues symbols;
    std::vector<std::vector<std::int64_t>> sizes, strides;  ///< of each of the plan's buffers
    MemoryLayout layout;
};

class CpuContext {
public:
    /// `fixed` are the addresses of weights and of what was computed at load, null for other buffers.
    CpuContext(const Plan &plan, std::span<const CpuCode> code, std::shared_ptr<const CpuShape> shape,
               const std::vector<std::byte *> &fixed);
    CpuContext(const CpuContext &) = delete;

    const CpuShape &shape() const { return *shape_; }
    std::byte *address(int buffer) const { return addresses_[buffer]; }
    void set_address(int buffer, std::byte *data);

    /// Runs the steps whose mark in `constant` equals `which`. UserError for an index out of range.
    /// Where `seconds` is given, each step's time goes there.
    void run(const Plan &plan, const std::vector<bool> &constant, bool which, std::vector<double> *seconds = nullptr);

private:
    struct Call {
        CpuFunction function = nullptr;
        std::vector<void *> arguments;
        std::vector<std::pair<std::byte *, std::size_t>> zeroed;
    };
    /// A tensor as one step sees it.
    struct View {
        halide_buffer_t buffer{};
        std::vector<halide_dimension_t> dimensions;
        std::int64_t byte_offset = 0;
    };
    Call prepare(const Plan &plan, std::span<const CpuCode> code, int step);
    [[noreturn]] void raise(const Plan &plan, const Step &step);
    View *view_of(const Plan &plan, const BufferArgument &argument);

    std::shared_ptr<const CpuShape> shape_;
    std::shared_ptr<std::byte> arena_;
    std::vector<std::byte *> addresses_;                     ///< of each of the plan's buffers
    std::vector<std::vector<std::unique_ptr<View>>> views_;  ///< of each buffer
    std::vector<std::unique_ptr<std::int64_t>> scalars_;
    std::vector<std::unique_ptr<void *>> pointers_;
    std::vector<Call> calls_;
    IndexStatus status_;
};

}  // namespace tilewright
