#include "runtime/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "dsl/error.h"

namespace tilewright {
namespace {

constexpr std::int64_t alignment = 256;

/// First and last step at which a tensor's bytes are in use.
struct Lifetime {
    int first = INT32_MAX;
    int last = -1;
    void touch(int step) {
        first = std::min(first, step);
        last = std::max(last, step);
    }
};

struct Request {
    Lifetime lifetime;
    std::int64_t bytes = 0;
    std::int64_t *offset = nullptr;
};

/// Largest first, each at the lowest offset that no tensor alive at the same time covers.
std::int64_t place(std::vector<Request> &requests) {
    std::stable_sort(requests.begin(), requests.end(), [](const Request &a, const Request &b) { return a.bytes > b.bytes; });
    std::vector<const Request *> placed;  // by offset
    std::int64_t total = 0;
    for (Request &request : requests) {
        std::int64_t offset = 0;
        for (const Request *other : placed) {
            const bool together = other->lifetime.first <= request.lifetime.last && request.lifetime.first <= other->lifetime.last;
            if (!together) {
                continue;
            }
            if (*other->offset >= offset + request.bytes) {
                break;
            }
            offset = std::max(offset, *other->offset + other->bytes);
        }
        *request.offset = offset;
        total = std::max(total, offset + request.bytes);
        const auto at =
            std::upper_bound(placed.begin(), placed.end(), offset, [](std::int64_t o, const Request *r) { return o < *r->offset; });
        placed.insert(at, &request);
    }
    return total;
}

std::int64_t aligned(std::int64_t bytes) { return (std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

template<typename Visit> void for_each_argument(const Step &step, Visit &&visit) {
    if (const auto *cpu = std::get_if<CpuStep>(&step.action)) {
        std::for_each(cpu->arguments.begin(), cpu->arguments.end(), visit);
    } else if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
        std::for_each(launch->arguments.begin(), launch->arguments.end(), visit);
    }
}

/// How long each buffer is in use; what an alias names counts for its owner.
std::vector<Lifetime> lifetimes_of(const Plan &plan) {
    std::vector<Lifetime> lifetimes(plan.buffers.size());
    const int end = static_cast<int>(plan.steps.size());
    for (int step = 0; step < end; ++step) {
        for (int buffer : buffers_of(plan.steps[step])) {
            const int owner = plan.buffers[buffer].alias_of;
            lifetimes[owner < 0 ? buffer : owner].touch(step);
        }
    }
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        if (plan.buffers[b].write_back_to >= 0) {
            lifetimes[b].touch(end);
        }
    }
    return lifetimes;
}

/// Scratch memory of a kernel's call, by its number: launches of one call share it.
struct ScratchSlot {
    std::int64_t bytes = 0;
    Lifetime lifetime;
    std::int64_t offset = 0;
};

}  // namespace

std::int64_t span_bytes(DType dtype, const std::vector<std::int64_t> &sizes, const std::vector<std::int64_t> &strides) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 0) {
            return 0;
        }
        last += (sizes[d] - 1) * strides[d];
    }
    return (last + 1) * size_in_bytes(dtype);
}

std::vector<std::int64_t> evaluate(const std::vector<Extent> &extents, const SymbolValues &symbols) {
    std::vector<std::int64_t> values;
    values.reserve(extents.size());
    for (const Extent &extent : extents) {
        values.push_back(extent.evaluate(symbols));
    }
    return values;
}

std::vector<int> buffers_of(const Step &step) {
    std::vector<int> buffers;
    const auto add = [&](int buffer) {
        if (buffer >= 0 && std::find(buffers.begin(), buffers.end(), buffer) == buffers.end()) {
            buffers.push_back(buffer);
        }
    };
    for_each_argument(step, [&](const StepArgument &argument) {
        if (const auto *buffer = std::get_if<BufferArgument>(&argument)) {
            add(buffer->buffer);
        } else if (const auto *map = std::get_if<TensorMapArgument>(&argument)) {
            add(map->buffer);
        }
    });
    if (const auto *matmul = std::get_if<MatmulEngineStep>(&step.action)) {
        for (int buffer : {matmul->a, matmul->b, matmul->bias, matmul->d}) {
            add(buffer);
        }
    }
    if (const auto *graph = std::get_if<GraphEngineStep>(&step.action)) {
        for (const EngineTensor &tensor : graph->tensors) {
            add(tensor.buffer);
        }
    }
    return buffers;
}

std::vector<int> buffers_written_by(const Step &step) {
    std::vector<int> buffers;
    for_each_argument(step, [&](const StepArgument &argument) {
        if (const auto *buffer = std::get_if<BufferArgument>(&argument); buffer && buffer->written) {
            buffers.push_back(buffer->buffer);
        } else if (const auto *map = std::get_if<TensorMapArgument>(&argument); map && map->written) {
            buffers.push_back(map->buffer);
        }
    });
    if (const auto *matmul = std::get_if<MatmulEngineStep>(&step.action)) {
        buffers.push_back(matmul->d);
    } else if (const auto *graph = std::get_if<GraphEngineStep>(&step.action)) {
        buffers.push_back(graph->tensors.back().buffer);
    }
    return buffers;
}

std::vector<int> kernel_calls(const Plan &plan) {
    std::vector<int> calls;
    std::set<std::pair<int, std::string>> seen;  // code and function of the current call: one that comes again starts the next call
    int call = -1;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        const Step &step = plan.steps[s];
        const auto *launch = std::get_if<LaunchStep>(&step.action);
        const bool continues =
            launch && s > 0 && step.kernel == plan.steps[s - 1].kernel && seen.emplace(launch->code, launch->function).second;
        if (!continues) {
            ++call;
            seen.clear();
            if (launch) {
                seen.emplace(launch->code, launch->function);
            }
        }
        calls.push_back(call);
    }
    return calls;
}

MemoryLayout plan_memory(const Plan &plan, const SymbolValues &symbols, const std::vector<bool> &persistent) {
    MemoryLayout layout;
    layout.offsets.assign(plan.buffers.size(), -1);
    layout.scratch.resize(plan.steps.size());

    const std::vector<int> calls = kernel_calls(plan);
    std::map<std::pair<int, int>, ScratchSlot> slots;  // by call and number
    std::vector<std::vector<const ScratchSlot *>> slots_of(plan.steps.size());
    for (std::size_t step = 0; step < plan.steps.size(); ++step) {
        for_each_argument(plan.steps[step], [&](const StepArgument &argument) {
            if (const auto *scratch = std::get_if<ScratchArgument>(&argument)) {
                ScratchSlot &slot = slots[{calls[step], scratch->slot}];
                slot.bytes = std::max(slot.bytes, scratch->bytes.evaluate(symbols));
                slot.lifetime.touch(static_cast<int>(step));
                slots_of[step].push_back(&slot);
            }
        });
    }

    std::vector<Request> requests;
    const std::vector<Lifetime> lifetimes = lifetimes_of(plan);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        const bool is_ours = buffer.kind == PlanBuffer::Kind::intermediate && buffer.alias_of < 0 && (persistent.empty() || !persistent[b]);
        if (is_ours && lifetimes[b].last >= 0) {
            const std::int64_t bytes =
                span_bytes(buffer.meta.dtype, evaluate(buffer.meta.sizes, symbols), evaluate(buffer.meta.strides, symbols));
            requests.push_back({lifetimes[b], aligned(bytes), &layout.offsets[b]});
        }
    }
    for (auto &[key, slot] : slots) {
        requests.push_back({slot.lifetime, aligned(slot.bytes), &slot.offset});
    }
    layout.arena_bytes = place(requests);
    for (std::size_t step = 0; step < plan.steps.size(); ++step) {
        for (const ScratchSlot *slot : slots_of[step]) {
            layout.scratch[step].push_back(slot->offset);
        }
    }
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        if (plan.buffers[b].alias_of >= 0) {
            layout.offsets[b] = layout.offsets[plan.buffers[b].alias_of];
        }
    }
    return layout;
}

}  // namespace tilewright
