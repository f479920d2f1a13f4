#include "runtime/cuda/binding.h"

#include <algorithm>

#include "dsl/error.h"
#include "runtime/cuda/strided_copy.h"

namespace tilewright {

CudaBinding::CudaBinding(const Plan &plan, const std::vector<CudaModule> &code, SymbolValues symbols, const ConstantSteps &constant,
                         const std::vector<CUdeviceptr> &fixed)
    : plan_(plan), symbols_(std::move(symbols)), layout_(plan_memory(plan, symbols_, constant.buffers)), addresses_(fixed) {
    for (const PlanBuffer &buffer : plan.buffers) {
        sizes_.push_back(evaluate(buffer.meta.sizes, symbols_));
        strides_.push_back(evaluate(buffer.meta.strides, symbols_));
    }
    steps_.resize(plan.steps.size());
    calls_ = kernel_calls(plan);
    for (std::size_t s = 0; s < plan.steps.size(); s++) {
        if (plan.steps[s].runs_for(symbols_)) {
            bind_step(code, static_cast<int>(s));
        }
    }
    arena_bytes_ = layout_.arena_bytes;
    plan_unnamed_outputs();
    plan_write_backs();
}

void CudaBinding::bind_step(const std::vector<CudaModule> &code, int index) {
    const Step &step = plan_.steps[index];
    BoundStep &bound = steps_[index];
    submissions_++;
    if (const auto *matmul = std::get_if<MatmulEngineStep>(&step.action)) {
        bound.matmul = std::make_unique<MatmulEngine>(*matmul, step.kernel, symbols_);
        engine_workspace_ = std::max(engine_workspace_, bound.matmul->workspace_bytes());
        return;
    }
    if (const auto *graph = std::get_if<GraphEngineStep>(&step.action)) {
        bound.graph = std::make_unique<CudnnEngine>(*graph, step.kernel, symbols_);
        engine_workspace_ = std::max(engine_workspace_, bound.graph->workspace_bytes());
        return;
    }
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    internal_assert(launch != nullptr, "step {} of a plan for the GPU is code for the CPU", step.kernel);
    const bool large_cluster = launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 8;
    bound.launch = std::make_unique<CudaLaunch>(
        *launch, step.kernel, code[launch->code].function(launch->function, launch->dynamic_shared_bytes, large_cluster), symbols_);
    std::size_t place = 0;
    for (const StepArgument &argument : launch->arguments) {
        if (const auto *scratch = std::get_if<ScratchArgument>(&argument)) {
            const bool first = scratch_seen_.emplace(calls_[index], scratch->slot).second;
            if (scratch->zeroed && first) {
                bound.zeroed.push_back({place, scratch->bytes.evaluate(symbols_)});
            }
            place++;
        }
    }
}

std::int64_t CudaBinding::add_to_arena(int like_buffer) {
    const std::int64_t offset = arena_bytes_;
    const std::int64_t bytes = span_bytes(plan_.buffers[like_buffer].meta.dtype, sizes_[like_buffer], strides_[like_buffer]);
    arena_bytes_ += (bytes + 255) / 256 * 256;
    return offset;
}

/// New values of mutated buffers that no user output names are memory of ours.
void CudaBinding::plan_unnamed_outputs() {
    for (std::size_t b = 0; b < plan_.buffers.size(); b++) {
        const PlanBuffer &buffer = plan_.buffers[b];
        const bool named = std::find(plan_.user_outputs.begin(), plan_.user_outputs.end(), static_cast<int>(b)) != plan_.user_outputs.end();
        if (buffer.kind == PlanBuffer::Kind::output && buffer.alias_of < 0 && !named && layout_.offsets[b] < 0) {
            layout_.offsets[b] = add_to_arena(static_cast<int>(b));
        }
    }
}

void CudaBinding::plan_write_backs() {
    std::vector<bool> mutated(plan_.buffers.size(), false);
    for (const PlanBuffer &buffer : plan_.buffers) {
        if (buffer.write_back_to >= 0) {
            mutated[buffer.write_back_to] = true;
        }
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); b++) {
        const PlanBuffer &buffer = plan_.buffers[b];
        if (buffer.write_back_to < 0) {
            continue;
        }
        WriteBack back{buffer.write_back_to, buffer.alias_of < 0 ? static_cast<int>(b) : buffer.alias_of};
        if (mutated[back.value] && back.value != back.target) {
            back.aside = add_to_arena(back.value);
        }
        write_backs_.push_back(back);
    }
}

void CudaBinding::place_arena(CUdeviceptr arena, CUdeviceptr workspace) {
    arena_ = arena;
    workspace_ = workspace;
    for (std::size_t b = 0; b < addresses_.size(); b++) {
        if (layout_.offsets[b] >= 0) {
            addresses_[b] = arena + static_cast<CUdeviceptr>(layout_.offsets[b]);
        }
    }
    scratch_.assign(layout_.scratch.size(), {});
    for (std::size_t s = 0; s < scratch_.size(); s++) {
        for (const std::int64_t offset : layout_.scratch[s]) {
            scratch_[s].push_back(arena + static_cast<CUdeviceptr>(offset));
        }
    }
}

void CudaBinding::enqueue_steps(const std::vector<bool> &constant, bool which, CUdeviceptr status, CUstream stream) {
    for (std::size_t b = 0; b < addresses_.size(); b++) {
        if (const int owner = plan_.buffers[b].alias_of; owner >= 0) {
            addresses_[b] = addresses_[owner];
        }
    }
    for (std::size_t s = 0; s < steps_.size(); s++) {
        if (constant[s] == which) {
            enqueue_step(static_cast<int>(s), status, stream);
        }
    }
}

void CudaBinding::enqueue_step(int index, CUdeviceptr status, CUstream stream) {
    BoundStep &step = steps_[index];
    const std::vector<CUdeviceptr> &scratch = scratch_[index];
    for (const Zeroed &zeroed : step.zeroed) {
        cuda_check(CudaDriver::get().memset8(scratch[zeroed.scratch], 0, static_cast<std::size_t>(zeroed.bytes), stream),
                   "clearing scratch memory");
    }
    if (step.launch) {
        step.launch->enqueue({&addresses_, &scratch, status + index * sizeof(CudaIndexStatus)}, stream);
        return;
    }
    const auto place = [&](int buffer, const Extent &offset, DType type) -> CUdeviceptr {
        return buffer < 0 ? 0 : addresses_[buffer] + static_cast<CUdeviceptr>(offset.evaluate(symbols_) * size_in_bytes(type));
    };
    if (step.matmul) {
        const auto &matmul = std::get<MatmulEngineStep>(plan_.steps[index].action);
        step.matmul->enqueue(place(matmul.a, matmul.a_offset, matmul.input_type), place(matmul.b, matmul.b_offset, matmul.input_type),
                             place(matmul.bias, matmul.bias_offset, matmul.output_type),
                             place(matmul.d, matmul.d_offset, matmul.output_type), workspace_, stream);
    } else if (step.graph) {
        std::vector<CUdeviceptr> tensors;
        for (const EngineTensor &tensor : std::get<GraphEngineStep>(plan_.steps[index].action).tensors) {
            tensors.push_back(place(tensor.buffer, tensor.offset, tensor.dtype));
        }
        step.graph->enqueue(tensors, workspace_, stream);
    }
}

void CudaBinding::enqueue_write_backs(CUstream stream) {
    const auto bytes = [&](const WriteBack &back) { return size_in_bytes(plan_.buffers[back.value].meta.dtype); };
    // Every value is taken before the first is written: an input may be another's new value.
    for (const WriteBack &back : write_backs_) {
        if (back.aside >= 0) {
            enqueue_strided_copy(arena_ + static_cast<CUdeviceptr>(back.aside), strides_[back.value], addresses_[back.value],
                                 strides_[back.value], sizes_[back.value], bytes(back), stream);
        }
    }
    for (const WriteBack &back : write_backs_) {
        const CUdeviceptr value = back.aside >= 0 ? arena_ + static_cast<CUdeviceptr>(back.aside) : addresses_[back.value];
        enqueue_strided_copy(addresses_[back.target], strides_[back.target], value, strides_[back.value], sizes_[back.value], bytes(back),
                             stream);
    }
}

}  // namespace tilewright
