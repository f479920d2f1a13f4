// The GPU executor: weights in device memory, runs in the context of their stream.
#include <algorithm>
#include <map>
#include <mutex>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/context_pool.h"
#include "runtime/cuda/host_copy.h"
#include "runtime/cuda/strided_copy.h"
#include "runtime/cuda/timer.h"
#include "runtime/executor.h"
#include "runtime/host_memory.h"
#include "runtime/outputs.h"
#include "runtime/strided_copy.h"

namespace tilewright {

namespace {

class CudaExecutor final : public Executor {
public:
    explicit CudaExecutor(Plan plan);
    ~CudaExecutor() override;
    std::vector<Tensor> run(std::span<const Tensor> inputs, void *stream) override;
    void run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, void *stream) override;
    std::vector<HostTensor> run_host(std::span<const HostTensor> inputs, std::vector<HostTensor> *mutated) override;
    std::vector<double> profile(std::span<const HostTensor> inputs, int repeats) override;
    const Plan &plan() const override { return plan_; }

private:
    void bind_weights();
    void run_constant_steps();
    void check_strides(const CudaBinding &binding, std::span<const Tensor> inputs) const;
    CudaAddresses addresses_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const;
    void submit(CudaContext &context, CudaBinding &binding, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                CUstream stream, bool may_record);
    std::vector<Tensor> upload_all(std::span<const HostTensor> inputs, CUstream stream) const;
    std::vector<Tensor> allocate_outputs(std::span<const Tensor> inputs) const;

    Plan plan_;
    std::vector<CudaModule> code_;
    ConstantSteps constant_;
    std::vector<CUdeviceptr> fixed_;    ///< weights and what was computed at load, by buffer
    std::vector<DeviceMemory> memory_;  ///< behind them
    std::vector<bool> mutated_;
    bool has_state_ = false;  ///< runs change a weight: they follow each other, whatever their stream
    bool checks_indices_ = false;
    std::mutex state_;
    std::unique_ptr<CudaEvent> state_written_;
    CudaContextPool contexts_;
};

CudaExecutor::CudaExecutor(Plan plan) : plan_(std::move(plan)), constant_(find_constant_steps(plan_)), contexts_(plan_) {
    cuda_device();
    for (const CodeObject &object : plan_.code) {
        code_.emplace_back(object);
    }
    mutated_.assign(plan_.buffers.size(), false);
    for (const PlanBuffer &buffer : plan_.buffers) {
        if (buffer.write_back_to >= 0) {
            mutated_[buffer.write_back_to] = true;
            has_state_ = has_state_ || plan_.buffers[buffer.write_back_to].kind == PlanBuffer::Kind::weight;
            prepare_strided_copy();
        }
    }
    for (const Step &step : plan_.steps) {
        if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
            checks_indices_ = checks_indices_ ||
                              std::any_of(launch->arguments.begin(), launch->arguments.end(),
                                          [](const StepArgument &argument) { return std::holds_alternative<StatusArgument>(argument); });
        }
    }
    if (has_state_) {
        state_written_ = std::make_unique<CudaEvent>();
    }
    bind_weights();
    run_constant_steps();
}

CudaExecutor::~CudaExecutor() {
    cuda_device();
    CudaDriver::get().context_synchronize();
}

void CudaExecutor::bind_weights() {
    fixed_.assign(plan_.buffers.size(), 0);
    const CudaStream stream;
    std::map<std::pair<const std::byte *, std::int64_t>, CUdeviceptr> uploaded;  // tied weights share their memory
    for (std::size_t b = 0; b < plan_.buffers.size(); b++) {
        const PlanBuffer &buffer = plan_.buffers[b];
        if (buffer.kind != PlanBuffer::Kind::weight) {
            continue;
        }
        const std::optional<HostTensor> &value = plan_.inputs[buffer.index].value;
        internal_assert(value.has_value(), "weight \"{}\" has no value", buffer.name);
        const std::int64_t bytes = span_bytes(value->meta.dtype, evaluate(value->meta.sizes, {}), evaluate(value->meta.strides, {}));
        const auto place = std::make_pair(value->data(), bytes);
        if (const auto found = uploaded.find(place); found != uploaded.end() && !mutated_[b]) {
            fixed_[b] = found->second;
            continue;
        }
        memory_.emplace_back(bytes);
        fixed_[b] = memory_.back().address();
        if (bytes > 0) {
            cuda_check(CudaDriver::get().copy_to_device(fixed_[b], value->data(), static_cast<std::size_t>(bytes), stream.get()),
                       fmt::format("copying weight {} to the GPU", buffer.name));
        }
        if (!mutated_[b]) {
            uploaded.emplace(place, fixed_[b]);
        }
    }
    stream.synchronize();
}

void CudaExecutor::run_constant_steps() {
    if (std::find(constant_.steps.begin(), constant_.steps.end(), true) == constant_.steps.end()) {
        return;
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); b++) {
        if (constant_.buffers[b]) {
            const TensorMeta &meta = plan_.buffers[b].meta;
            memory_.emplace_back(span_bytes(meta.dtype, evaluate(meta.sizes, {}), evaluate(meta.strides, {})));
            fixed_[b] = memory_.back().address();
        }
    }
    SymbolValues smallest;  // constant steps read no symbol; the others' sizes only have to exist
    for (const auto &[symbol, range] : plan_.symbols) {
        smallest[symbol] = range.min;
    }
    CudaContext context(plan_);
    const CudaStream &stream = context.own_stream();
    CudaBinding &binding = context.bind(code_, smallest, constant_, fixed_, stream.get());
    binding.enqueue_steps(constant_.steps, true, context.status_address(), stream.get());
    stream.synchronize();
    context.check_status();
}

void CudaExecutor::check_strides(const CudaBinding &binding, std::span<const Tensor> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); i++) {
        const int buffer = plan_.user_inputs[i];
        if (!same_layout(inputs[i].strides, binding.strides(buffer), binding.sizes(buffer))) {
            user_error(
                "{} has strides [{}], the model was captured with [{}]; make it contiguous as there, or capture the model with such an "
                "input",
                input_label(plan_, static_cast<int>(i)), fmt::join(inputs[i].strides, ", "), fmt::join(binding.strides(buffer), ", "));
        }
    }
}

CudaAddresses CudaExecutor::addresses_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
    CudaAddresses addresses(plan_.buffers.size(), 0);
    for (std::size_t i = 0; i < inputs.size(); i++) {
        addresses[plan_.user_inputs[i]] = reinterpret_cast<CUdeviceptr>(inputs[i].data);
    }
    for (std::size_t i = 0; i < outputs.size(); i++) {
        const int buffer = plan_.user_outputs[i];
        const PlanBuffer &place = plan_.buffers[buffer];
        if (place.alias_of < 0 && place.kind == PlanBuffer::Kind::output && addresses[buffer] == 0) {
            addresses[buffer] = reinterpret_cast<CUdeviceptr>(outputs[i].data);
        }
    }
    return addresses;
}

/// Outputs of the plan that no user output names (an updated buffer, say) lie in the arena or are written back from there; those that
/// name memory of ours are copied out.
void CudaExecutor::submit(CudaContext &context, CudaBinding &binding, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                          CUstream stream, bool may_record) {
    CudaAddresses addresses = addresses_of(inputs, outputs);
    AlignedCopies &copies = context.aligned_copies();
    copies.enter(plan_, binding, addresses, stream);
    context.submit(binding, addresses, constant_.steps, stream, may_record);
    copies.leave(plan_, binding, stream);
    for (std::size_t i = 0; i < outputs.size(); i++) {
        const int owner = plan_.buffers[plan_.user_outputs[i]].alias_of;
        if (owner >= 0 &&
            (plan_.buffers[owner].kind == PlanBuffer::Kind::weight || plan_.buffers[owner].kind == PlanBuffer::Kind::intermediate)) {
            enqueue_strided_copy(reinterpret_cast<CUdeviceptr>(outputs[i].data), outputs[i].strides, binding.address(owner),
                                 binding.strides(owner), binding.sizes(owner), size_in_bytes(outputs[i].dtype), stream);
        }
    }
}

void CudaExecutor::run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, void *given_stream) {
    cuda_device();
    const AllowAllocationDuringCapture allow;  // a first run prepares memory and code, also inside a caller's capture
    const SymbolValues symbols = bind_symbols(plan_, inputs);
    std::unique_lock<std::mutex> in_order(state_, std::defer_lock);
    if (has_state_) {
        in_order.lock();
    }
    bool capturing = false;
    const std::shared_ptr<CudaContext> context =
        given_stream != nullptr ? contexts_.of_stream(static_cast<CUstream>(given_stream), &capturing) : contexts_.take_idle();
    {
        const std::lock_guard lock(context->mutex());
        const CUstream stream = given_stream != nullptr ? static_cast<CUstream>(given_stream) : context->own_stream().get();
        if (!capturing) {
            context->check_status();
        }
        CudaBinding &binding = context->bind(code_, symbols, constant_, fixed_, stream);
        check_strides(binding, inputs);
        if (has_state_ && !capturing) {
            cuda_check(CudaDriver::get().stream_wait_event(stream, state_written_->get(), 0), "waiting for an earlier run");
        }
        submit(*context, binding, inputs, outputs, stream, !capturing && given_stream != nullptr);
        if (capturing) {
            contexts_.keep_captured(context, stream, context->owns_memory() || checks_indices_);
        }
        if (has_state_ && !capturing) {
            state_written_->record(stream);
        }
        if (given_stream == nullptr || (checks_indices_ && !capturing)) {
            cuda_check(CudaDriver::get().stream_synchronize(stream), "running on the GPU");
            context->check_status();
        }
    }
    if (given_stream == nullptr) {
        contexts_.give_back(context);
    }
}

std::vector<Tensor> CudaExecutor::allocate_outputs(std::span<const Tensor> inputs) const {
    std::vector<Tensor> outputs;
    for (const OutputPlace &place : describe_outputs(plan_, inputs)) {
        Tensor output{place.dtype, place.sizes, place.strides, nullptr, nullptr};
        if (place.input >= 0) {
            output = inputs[place.input];
        } else if (place.output >= 0) {
            output = outputs[place.output];
        } else {
            const auto memory = std::make_shared<DeviceMemory>(span_bytes(place.dtype, place.sizes, place.strides));
            output.data = memory->data();
            output.storage = memory;
        }
        outputs.push_back(std::move(output));
    }
    return outputs;
}

std::vector<Tensor> CudaExecutor::run(std::span<const Tensor> inputs, void *stream) {
    cuda_device();
    std::vector<Tensor> outputs = allocate_outputs(inputs);
    run_into(inputs, outputs, stream);
    return outputs;
}

/// Each step on its own, from a cold cache, after a whole run has filled what it reads.
std::vector<double> CudaExecutor::profile(std::span<const HostTensor> inputs, int repeats) {
    cuda_device();
    CudaContext context(plan_);
    const CUstream stream = context.own_stream().get();
    const std::vector<Tensor> tensors = upload_all(inputs, stream);
    const std::vector<Tensor> outputs = allocate_outputs(tensors);
    CudaBinding &binding = context.bind(code_, bind_symbols(plan_, tensors), constant_, fixed_, stream);
    submit(context, binding, tensors, outputs, stream, false);
    context.own_stream().synchronize();
    context.check_status();
    std::vector<double> seconds(plan_.steps.size(), 0.0);
    CudaTimer timer;
    for (std::size_t s = 0; s < plan_.steps.size(); s++) {
        if (!constant_.steps[s] && binding.runs(static_cast<int>(s))) {
            seconds[s] = 1e-6 * timer.time([&](CUstream on) { binding.enqueue_step(static_cast<int>(s), context.status_address(), on); },
                                           {.rounds = repeats});
        }
    }
    return seconds;
}

std::vector<Tensor> CudaExecutor::upload_all(std::span<const HostTensor> inputs, CUstream stream) const {
    std::vector<Tensor> described;
    std::transform(inputs.begin(), inputs.end(), std::back_inserter(described), to_tensor);
    const SymbolValues symbols = bind_symbols(plan_, described);
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); i++) {
        tensors.push_back(upload(inputs[i], evaluate(plan_.buffers[plan_.user_inputs[i]].meta.strides, symbols), stream));
    }
    return tensors;
}

std::vector<HostTensor> CudaExecutor::run_host(std::span<const HostTensor> inputs, std::vector<HostTensor> *mutated) {
    cuda_device();
    const CudaStream stream;
    const std::vector<Tensor> tensors = upload_all(inputs, stream.get());
    std::vector<HostTensor> outputs;
    for (const Tensor &output : run(tensors, nullptr)) {
        outputs.push_back(download(output, stream.get()));
    }
    if (mutated != nullptr) {
        mutated->clear();
        for (std::size_t i = 0; i < tensors.size(); i++) {
            mutated->push_back(mutated_[plan_.user_inputs[i]] ? download(tensors[i], stream.get()) : inputs[i]);
        }
    }
    return outputs;
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(Plan plan) {
    verify(plan);
    return std::make_unique<CudaExecutor>(std::move(plan));
}

}  // namespace tilewright
