#include "runtime/cpu/context.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/host_memory.h"

namespace tilewright {
namespace {

halide_type_t halide_type(DType type) {
    const auto bits = static_cast<std::uint8_t>(size_in_bytes(type) * 8);
    switch (type) {
        case DType::boolean:
            return {halide_type_uint, 1};
        case DType::bfloat16:
            return {halide_type_bfloat, 16};
        case DType::float8_e4m3fn:
        case DType::float8_e5m2:
            return {halide_type_uint, 8};
        default:
            break;
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

CpuContext::CpuContext(const Plan &plan, std::span<const CpuCode> code, std::shared_ptr<const CpuShape> shape,
                       const std::vector<std::byte *> &fixed)
    : shape_(std::move(shape)),
      arena_(allocate_host(static_cast<std::size_t>(shape_->layout.arena_bytes))),
      addresses_(fixed),
      views_(plan.buffers.size()) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        const std::int64_t offset = shape_->layout.offsets[b];
        if (offset >= 0) {
            addresses_[b] = arena_.get() + offset;
        }
    }
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        calls_.push_back(plan.steps[s].runs_for(shape_->symbols) ? prepare(plan, code, static_cast<int>(s)) : Call{});
    }
}

void CpuContext::set_address(int buffer, std::byte *data) {
    addresses_[buffer] = data;
    for (const auto &view : views_[buffer]) {
        view->buffer.host = reinterpret_cast<std::uint8_t *>(data + view->byte_offset);
    }
}

CpuContext::View *CpuContext::view_of(const Plan &plan, const BufferArgument &argument) {
    const PlanBuffer &buffer = plan.buffers[argument.buffer];
    const TensorMeta &meta = argument.view ? *argument.view : buffer.meta;
    auto view = std::make_unique<View>();
    view->byte_offset = argument.view ? meta.offset.evaluate(shape_->symbols) * size_in_bytes(meta.dtype) : 0;
    for (int d = 0; d < meta.rank(); ++d) {
        view->dimensions.emplace_back(0, narrow(meta.sizes[d].evaluate(shape_->symbols), buffer),
                                      narrow(meta.strides[d].evaluate(shape_->symbols), buffer));
    }
    view->buffer.type = halide_type(meta.dtype);
    view->buffer.dimensions = meta.rank();
    view->buffer.dim = view->dimensions.data();
    view->buffer.host = reinterpret_cast<std::uint8_t *>(addresses_[argument.buffer] + view->byte_offset);
    views_[argument.buffer].push_back(std::move(view));
    return views_[argument.buffer].back().get();
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
            call.arguments.push_back(&view_of(plan, *buffer)->buffer);
        } else if (const auto *scalar = std::get_if<ScalarArgument>(&argument)) {
            scalars_.push_back(
                std::make_unique<std::int64_t>(scalar->value.evaluate(shape_->symbols)));  // little endian: narrower reads agree
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

void CpuContext::run(const Plan &plan, const std::vector<bool> &constant, bool which, std::vector<double> *seconds) {
    using clock = std::chrono::steady_clock;
    for (std::size_t s = 0; s < calls_.size(); ++s) {
        Call &call = calls_[s];
        if (constant[s] != which || !call.function) {
            continue;
        }
        const clock::time_point start = seconds ? clock::now() : clock::time_point{};
        for (const auto &[address, bytes] : call.zeroed) {
            std::memset(address, 0, bytes);
        }
        if (const int result = call.function(call.arguments.data()); result != 0) {
            internal_error("kernel \"{}\" failed with Halide's error {}", plan.steps[s].kernel, result);
        }
        if (seconds) {
            (*seconds)[s] = std::chrono::duration<double>(clock::now() - start).count();
        }
        if (status_.site_plus_one != 0) {
            raise(plan, plan.steps[s]);
        }
    }
}

void CpuContext::raise(const Plan &plan, const Step &step) {
    const IndexStatus raised = std::exchange(status_, {});
    const int site = raised.site_plus_one - 1;
    const bool mapped = site >= 0 && site < static_cast<int>(step.sites.size());
    throw UserError(index_error_message(plan, mapped ? step.sites[site] : site, raised.index, raised.size));
}

}  // namespace tilewright
