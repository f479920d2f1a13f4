#include "autotune/inputs/draw_inputs.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "autotune/inputs/compare.h"
#include "autotune/inputs/given_sizes.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

constexpr std::int64_t period = 1048573;       ///< a prime below 2^20
constexpr std::int64_t values_of_indices = 2;  ///< that any axis of two has

/// Drawn once; every tensor begins at another place of them.
const std::vector<float> &normal_values() {
    static const std::vector<float> values = [] {
        std::mt19937_64 random(1);
        std::normal_distribution<float> normal;
        std::vector<float> drawn(static_cast<std::size_t>(period));
        std::generate(drawn.begin(), drawn.end(), [&] { return normal(random); });
        return drawn;
    }();
    return values;
}

}  // namespace

DrawnPattern draw_pattern(DType type, std::int64_t count, std::int64_t bound, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> &normal = normal_values();
    const std::uint64_t start = random() % normal.size();
    DrawnPattern pattern;
    pattern.elements = std::min(count, period);
    const int bytes = size_in_bytes(type);
    pattern.bytes.resize(static_cast<std::size_t>(pattern.elements * bytes));
    const auto values = static_cast<std::uint64_t>(type == DType::boolean ? 2 : std::max<std::int64_t>(bound, 1));
    for (std::int64_t i = 0; i < pattern.elements; ++i) {
        write_element(type, pattern.bytes.data() + i * bytes,
                      is_floating_point(type) ? normal[(start + static_cast<std::uint64_t>(i)) % normal.size()]
                                              : static_cast<double>(random() % values));
    }
    return pattern;
}

HostTensor draw_tensor(DType type, const std::vector<std::int64_t> &sizes, const std::vector<std::int64_t> &strides, std::int64_t bound,
                       std::uint64_t seed) {
    const Tensor tensor = allocate_tensor(type, sizes, strides);
    const std::int64_t span = span_bytes(type, sizes, strides);
    const DrawnPattern pattern = draw_pattern(type, span / size_in_bytes(type), bound, seed);
    const auto step = static_cast<std::int64_t>(pattern.bytes.size());
    for (std::int64_t at = 0; at < span; at += step) {
        std::memcpy(tensor.data + at, pattern.bytes.data(), static_cast<std::size_t>(std::min(step, span - at)));
    }
    return to_host_tensor(tensor);
}

std::vector<HostTensor> draw_inputs(const Plan &plan, const std::map<std::string, std::int64_t> &sizes, std::uint64_t seed) {
    SymbolValues symbols = usual_sizes(plan.symbols);
    apply_sizes(sizes, plan.symbols, symbols);
    std::vector<HostTensor> inputs;
    for (const int index : plan.user_inputs) {
        const TensorMeta &meta = plan.buffers[index].meta;
        inputs.push_back(
            draw_tensor(meta.dtype, evaluate(meta.sizes, symbols), evaluate(meta.strides, symbols), values_of_indices, seed++));
    }
    return inputs;
}

void draw_weights(Plan &plan, std::uint64_t seed) {
    for (const PlanBuffer &buffer : plan.buffers) {
        if (buffer.kind == PlanBuffer::Kind::weight && !plan.inputs[buffer.index].value) {
            plan.inputs[buffer.index].value = draw_tensor(buffer.meta.dtype, evaluate(buffer.meta.sizes, {}),
                                                          evaluate(buffer.meta.strides, {}), values_of_indices, seed++);
        }
    }
}

}  // namespace tilewright
