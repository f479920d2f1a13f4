#include "autotune/measure/plan_timer.h"

#include <cstdlib>

#include "autotune/inputs/draw_inputs.h"
#include "dsl/atomic_file.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "runtime/plan_archive.h"

namespace tilewright {
namespace {

constexpr std::int64_t values_of_any_index = 2;

}  // namespace

Plan read_plan(const std::string &path) {
    const std::string bytes = read_file(path, std::size_t{4} << 30);
    std::optional<Plan> plan = load_plan(std::as_bytes(std::span(bytes)));
    if (!plan) {
        user_error("{} is no plan of this build", path);
    }
    draw_weights(*plan);
    return std::move(*plan);
}

std::int64_t drawn_bound(const TimingRequest &request, std::size_t index) {
    const std::int64_t bound = index < request.inputs.size() ? std::atoll(request.inputs[index].c_str()) : 0;
    return bound > 0 ? bound : values_of_any_index;
}

std::optional<HostTensor> given_input(const Plan &plan, const TimingRequest &request, std::size_t index) {
    if (request.values.empty() || index >= request.inputs.size() || std::atoll(request.inputs[index].c_str()) > 0) {
        return std::nullopt;
    }
    const TensorMeta &meta = plan.buffers[plan.user_inputs[index]].meta;
    for (const auto &[name, tensor] : read_safetensors(request.values)) {
        if (name == request.inputs[index] && tensor.meta.dtype == meta.dtype && tensor.meta.sizes == meta.sizes &&
            tensor.meta.strides == meta.strides) {
            return tensor;
        }
    }
    return std::nullopt;
}

}  // namespace tilewright
