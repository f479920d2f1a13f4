#include "runtime/cpu_context.h"

#include <algorithm>
#include <cstring>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/host_memory.h"

namespace tilewright {
namespace {

halide_type_t halide_type(DType type) {
    const auto bits = static_cast<std::uint8_t>(size_in_bytes(type) * 8);
    switch (type) {
        case DType::boolean: return {halide_type_uint, 1};
        case DType::bfloat16: return {halide_type_bfloat, 16};
        default: break;
    }
    if (is_floating_point(type)) {
        return {halide_type_float, bits};
    }
    return {is_signed_integer(type) ? halide_type_int : halide_type_uint, bits};
}

std::int32_t narrow(std::int64_t value, const PlanBuffer &buffer) {
    if (value > INT32_MAX || value < INT32_MIN) {
        user_error("tensor \"{}\" has a size or stride of {}; the CPU target handles axes up to 2147483647", buffer.name, value);
    }
    return static_cast<std::int32_t>(value);
}

}  // namespace

CpuShape::CpuShape(const Plan &plan, SymbolValues values, const std::vector<bool> &persistent)
    : symbols(std::move(values)), layout(plan_memory(plan, symbols, persistent)) {
    for (const PlanBuffer &buffer : plan.buffers) {
        sizes.push_back(evaluate(buffer.meta.sizes, symbols));
        strides.push_back(evaluate(buffer.meta.strides, symbols));
    }
}

CpuContext::CpuContext(const Plan &plan, std::span<const CpuCode> code, std::shared_ptr<const CpuShape> shape, const std::vector<std::byte *> &fixed)
    : shape_(std::move(shape)), arena_(allocate_host(static_cast<std::size_t>(shape_->layout.arena_bytes))) {
    const std::size_t count = plan.buffers.size();
    std::size_t dimensions = 0;
    for (const auto &sizes : shape_->sizes) {
        dimensions += sizes.size();
    }
    dimensions_.resize(dimensions);
    buffers_.assign(count, halide_buffer_t{});
    halide_dimension_t *dimension = dimensions_.data();
    for (std::size_t b = 0; b < count; ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        buffers_[b].type = halide_type(buffer.meta.dtype);
        buffers_[b].dimensions = buffer.meta.rank();
        buffers_[b].dim = dimension;
        for (int d = 0; d < buffer.meta.rank(); ++d) {
            *dimension++ = halide_dimension_t(0, narrow(shape_->sizes[b][d], buffer), narrow(shape_->strides[b][d], buffer));
        }
        const std::int64_t offset = shape_->layout.offsets[b];
        set_address(static_cast<int>(b), offset >= 0 ? arena_.get() + offset : fixed[b]);
    }
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        calls_.push_back(plan.steps[s].runs_for(shape_->symbols) ? prepare(plan, code, static_cast<int>(s)) : Call{});
    }
}

CpuContext::Call CpuContext::prepare(const Plan &plan, std::span<const CpuCode> code, int step) {
    const auto &action = std::get<CpuStep>(plan.steps[step].action);
    Call call;
    call.function = code[action.code].function(action.function);
    const auto pointer_to = [&](void *address) {
        pointers_.push_back(std::make_unique<void *>(address));
        call.arguments.push_back(pointers_.back().get());
    };
    std::size_t scratch_index = 0;
    for (const StepArgument &argument : action.arguments) {
        if (const auto *buffer = std::get_if<BufferArgument>(&argument)) {
            call.arguments.push_back(&buffers_[buffer->buffer]);
        } else if (const auto *scalar = std::get_if<ScalarArgument>(&argument)) {
            scalars_.push_back(std::make_unique<std::int64_t>(scalar->value.evaluate(shape_->symbols)));  // little endian: narrower reads agree
            call.arguments.push_back(scalars_.back().get());
        } else if (std::holds_alternative<StatusArgument>(argument)) {
            pointer_to(&status_);
        } else if (const auto *scratch = std::get_if<ScratchArgument>(&argument)) {
            std::byte *address = arena_.get() + shape_->layout.scratch[step][scratch_index++];
            pointer_to(address);
            if (scratch->zeroed) {
                call.zeroed.emplace_back(address, static_cast<std::size_t>(scratch->bytes.evaluate(shape_->symbols)));
            }
        } else {
            internal_error("step \"{}\" passes a tensor map to code for the CPU", plan.steps[step].kernel);
        }
    }
    return call;
}

void CpuContext::run(const Plan &plan, const std::vector<bool> &constant, bool which) {
    for (std::size_t s = 0; s < calls_.size(); ++s) {
        if (constant[s] != which || !calls_[s].function) {
            continue;
        }
        Call &call = calls_[s];
        for (const auto &[address, bytes] : call.zeroed) {
            std::memset(address, 0, bytes);
        }
        if (const int result = call.function(call.arguments.data()); result != 0) {
            internal_error("kernel \"{}\" failed with Halide's error {}", plan.steps[s].kernel, result);
        }
        if (status_.site_plus_one != 0) {
            const IndexStatus raised = std::exchange(status_, {});
            int site = raised.site_plus_one - 1;
            const std::vector<int> &sites = plan.steps[s].sites;
            if (site >= 0 && site < static_cast<int>(sites.size())) {
                site = sites[site];
            }
            throw UserError(index_error_message(plan, site, raised.index, raised.size));
        }
    }
}

}  // namespace tilewright
