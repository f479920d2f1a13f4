#include "autotune/draw_inputs.h"

#include <algorithm>
#include <random>

#include "autotune/compare.h"
#include "dsl/error.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"

namespace tilewright {

std::vector<HostTensor> draw_inputs(const Plan &plan, const std::map<std::string, std::int64_t> &sizes, std::uint64_t seed) {
    SymbolValues symbols;
    for (const auto &[symbol, range] : plan.symbols) {
        symbols[symbol] = std::clamp<std::int64_t>(2, range.min, range.max);
    }
    for (const auto &[symbol, value] : sizes) {
        if (!plan.symbols.contains(symbol)) {
            std::string known;
            for (const auto &[other, range] : plan.symbols) {
                known += (known.empty() ? "" : ", ") + other;
            }
            user_error("size {}: the model has no such symbol; it has {}", symbol, known.empty() ? "none" : known);
        }
        symbols[symbol] = value;
    }
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<HostTensor> inputs;
    for (const int index : plan.user_inputs) {
        const TensorMeta &meta = plan.buffers[index].meta;
        const Tensor tensor = allocate_tensor(meta.dtype, evaluate(meta.sizes, symbols), evaluate(meta.strides, symbols));
        const int bytes = size_in_bytes(meta.dtype);
        const std::int64_t span = span_bytes(tensor.dtype, tensor.sizes, tensor.strides);
        for (std::int64_t at = 0; at < span; at += bytes) {
            write_element(meta.dtype, tensor.data + at, is_floating_point(meta.dtype) ? normal(random) : static_cast<double>(random() & 1));
        }
        inputs.push_back(to_host_tensor(tensor));
    }
    return inputs;
}

}  // namespace tilewright
