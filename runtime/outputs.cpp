#include "runtime/outputs.h"

#include "runtime/bind_symbols.h"
#include "runtime/memory_plan.h"
#include "runtime/strided_copy.h"

namespace tilewright {

std::vector<OutputPlace> describe_outputs(const Plan &plan, std::span<const Tensor> inputs) {
    const SymbolValues symbols = bind_symbols(plan, inputs);
    std::vector<OutputPlace> places;
    std::vector<int> owners;
    for (const int output : plan.user_outputs) {
        const PlanBuffer &buffer = plan.buffers[output];
        const int owner = buffer.alias_of < 0 ? output : buffer.alias_of;
        const PlanBuffer &memory = plan.buffers[owner];
        OutputPlace place{memory.meta.dtype, evaluate(memory.meta.sizes, symbols), evaluate(memory.meta.strides, symbols)};
        if (memory.kind == PlanBuffer::Kind::input) {
            place.input = memory.index;
            place.sizes = inputs[memory.index].sizes;
            place.strides = inputs[memory.index].strides;
        } else if (memory.kind == PlanBuffer::Kind::output) {
            for (std::size_t i = 0; i < owners.size() && place.output < 0; i++) {
                place.output = owners[i] == owner ? static_cast<int>(i) : -1;
            }
        }
        owners.push_back(owner);
        places.push_back(std::move(place));
    }
    return places;
}

/// For targets whose memory the host addresses.
void Executor::run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, void *stream) {
    const std::vector<Tensor> results = run(inputs, stream);
    for (std::size_t i = 0; i < results.size() && i < outputs.size(); i++) {
        const Tensor &from = results[i];
        if (from.data != outputs[i].data && outputs[i].data != nullptr) {
            copy_strided(outputs[i].data, outputs[i].strides, from.data, from.strides, from.sizes, size_in_bytes(from.dtype));
        }
    }
}

}  // namespace tilewright
