// A partition by the reference evaluator: tensors between kernels are memory, laid out as each kernel says.
#include <cstring>
#include <stdexcept>

#include "dsl/error.h"
#include "tests/support/reference.h"
#include "tests/support/reference_code.h"

namespace tilewright::tests {

namespace {

/// Pairs the elements of a contiguous tensor with places in memory that is laid out as `meta` says, its offset counted from element 0.
template<typename Copy> void for_each_place(const TensorMeta &meta, const SymbolValues &symbols, Copy copy) {
    std::vector<std::int64_t> strides = evaluate_all(meta.strides, symbols);
    std::int64_t bytes = size_in_bytes(meta.dtype), offset = meta.offset.evaluate(symbols), next = 0;
    for_each_point(evaluate_all(meta.sizes, symbols), [&](const std::vector<std::int64_t> &at) {
        std::int64_t place = offset;
        for (std::size_t i = 0; i < at.size(); i++) {
            place += at[i] * strides[i];
        }
        copy(place * bytes, next * bytes, bytes);
        next++;
    });
}

using Memory = std::vector<std::byte>;

void store_strided(const HostTensor &contiguous, const TensorMeta &meta, const SymbolValues &symbols, Memory &memory) {
    for_each_place(meta, symbols, [&](std::int64_t place, std::int64_t from, std::int64_t bytes) {
        memory.resize(std::max(memory.size(), static_cast<std::size_t>(place + bytes)));
        std::memcpy(memory.data() + place, contiguous.data() + from, static_cast<std::size_t>(bytes));
    });
}

HostTensor load_strided(const Memory &memory, const TensorMeta &meta, const SymbolValues &symbols) {
    HostTensor tensor = HostTensor::zeros(meta.dtype, evaluate_all(meta.sizes, symbols));
    for_each_place(meta, symbols, [&](std::int64_t place, std::int64_t to, std::int64_t bytes) {
        if (place + bytes > static_cast<std::int64_t>(memory.size())) {
            throw std::out_of_range("a kernel reads memory that no kernel wrote");
        }
        std::memcpy(tensor.mutable_data() + to, memory.data() + place, static_cast<std::size_t>(bytes));
    });
    return tensor;
}

}  // namespace

ReferenceResult evaluate(const Partition &partition, const Algorithm &algorithm, const std::map<std::string, HostTensor> &inputs,
                         const SymbolValues &symbols) {
    ReferenceResult result;
    std::map<std::string, Memory> memories;
    auto from_element_0 = [](TensorMeta meta) {
        meta.offset = 0;
        return meta;
    };
    for (const TensorInput &input : algorithm.inputs) {
        const HostTensor &given = inputs.at(input.name());
        std::size_t bytes = given.storage_bytes - static_cast<std::size_t>(given.data() - given.storage.get());
        HostTensor contiguous = load_strided(Memory(given.data(), given.data() + bytes), from_element_0(given.meta), symbols);
        store_strided(contiguous, from_element_0(input.meta), symbols, memories[input.name()]);
    }
    for (const KernelCall &call : partition.calls) {
        const Algorithm &kernel = partition.kernels[static_cast<std::size_t>(call.kernel)].algorithm;
        std::map<std::string, HostTensor> given;
        for (std::size_t i = 0; i < call.inputs.size(); i++) {
            TensorMeta seen = kernel.inputs[i].meta;
            seen.offset = call.input_offsets.empty() ? seen.offset : seen.offset + call.input_offsets[i];
            given[kernel.inputs[i].name()] = load_strided(memories.at(call.inputs[i]), seen, symbols);
        }
        ReferenceResult part = evaluate(kernel, given, symbols);
        for (std::size_t i = 0; i < call.outputs.size(); i++) {
            store_strided(part.outputs.at(kernel.outputs[i].name), kernel.outputs[i].meta, symbols, memories[call.outputs[i]]);
        }
        if (part.index_error && !result.index_error) {
            result.index_error = part.index_error;
            if (!call.index_sites.empty()) {
                result.index_error->site = call.index_sites.at(static_cast<std::size_t>(part.index_error->site));
            }
        }
    }
    for (const TensorOutput &output : algorithm.outputs) {
        result.outputs[output.name] = load_strided(memories[output.name], from_element_0(output.meta), symbols);
    }
    return result;
}

}  // namespace tilewright::tests
