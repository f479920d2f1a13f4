// The GPU executor: weights in device memory, a context for each stream, and one for each capture of a caller.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/cuda_context.h"
#include "runtime/cuda_strided_copy.h"
#include "runtime/cuda_timer.h"
#include "runtime/executor.h"
#include "runtime/host_memory.h"
#include "runtime/outputs.h"
#include "runtime/strided_copy.h"

namespace tilewright {

namespace {

constexpr std::size_t kept_streams = 16;

/// A context that a captured graph uses lives as long as the graph, which tells when it goes.
struct CaptureUse {
    std::shared_ptr<CudaContext> context;
};
void end_capture_use(void *use) { delete static_cast<CaptureUse *>(use); }

struct Capture {
    std::weak_ptr<CudaContext> context;
    bool is_held = false;  ///< by the graph
};

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
    void submit(CudaContext &context, CudaBinding &binding, std::span<const Tensor> inputs, std::span<const Tensor> outputs, CUstream stream,
                bool may_record);
    std::shared_ptr<CudaContext> context_for(CUstream stream, bool *capturing);
    void keep_captured(const std::shared_ptr<CudaContext> &context, CUstream stream);
    std::shared_ptr<CudaContext> acquire_own();
    std::vector<Tensor> upload_all(std::span<const HostTensor> inputs, CUstream stream) const;
    std::vector<Tensor> allocate_outputs(std::span<const Tensor> inputs) const;
    Tensor upload(const HostTensor &tensor, const std::vector<std::int64_t> &strides, CUstream stream) const;
    HostTensor download(const Tensor &tensor, CUstream stream) const;

    Plan plan_;
    std::vector<CudaModule> code_;
    ConstantSteps constant_;
    std::vector<CUdeviceptr> fixed_;     ///< weights and what was computed at load, by buffer
    std::vector<DeviceMemory> memory_;   ///< behind them
    std::vector<bool> mutated_;
    bool has_state_ = false;             ///< runs change a weight: they follow each other, whatever their stream
    bool checks_indices_ = false;
    std::mutex state_;
    std::unique_ptr<CudaEvent> state_written_;
    std::mutex contexts_mutex_;
    std::list<std::pair<CUstream, std::shared_ptr<CudaContext>>> streams_;           ///< most recently used first
    std::map<cuuint64_t, Capture> captures_;
    std::set<std::shared_ptr<CudaContext>> captured_;                                ///< whose memory no captured graph works in
    std::vector<std::shared_ptr<CudaContext>> own_;                                  ///< idle, for runs without a stream
};

CudaExecutor::CudaExecutor(Plan plan) : plan_(std::move(plan)), constant_(find_constant_steps(plan_)) {
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
            checks_indices_ = checks_indices_ || std::any_of(launch->arguments.begin(), launch->arguments.end(), [](const StepArgument &argument) {
                                  return std::holds_alternative<StatusArgument>(argument);
                              });
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
            user_error("{} has strides [{}], the model was captured with [{}]; make it contiguous as there, or capture the model with such an input",
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
        if (owner >= 0 && (plan_.buffers[owner].kind == PlanBuffer::Kind::weight || plan_.buffers[owner].kind == PlanBuffer::Kind::intermediate)) {
            enqueue_strided_copy(reinterpret_cast<CUdeviceptr>(outputs[i].data), outputs[i].strides, binding.address(owner), binding.strides(owner),
                                 binding.sizes(owner), size_in_bytes(outputs[i].dtype), stream);
        }
    }
}

std::shared_ptr<CudaContext> CudaExecutor::context_for(CUstream stream, bool *capturing) {
    const CudaDriver &driver = CudaDriver::get();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    cuda_check(driver.stream_capture_info(stream, &status, &id, &graph, nullptr, nullptr), "asking whether a stream is captured");
    *capturing = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const std::lock_guard lock(contexts_mutex_);
    if (!*capturing) {
        const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto &entry) { return entry.first == stream; });
        if (found != streams_.end()) {
            streams_.splice(streams_.begin(), streams_, found);
        } else {
            streams_.emplace_front(stream, std::make_shared<CudaContext>(plan_));
            if (streams_.size() > kept_streams) {
                cuda_check(driver.context_synchronize(), "running on the GPU");
                streams_.pop_back();
            }
        }
        return streams_.front().second;
    }
    std::erase_if(captures_, [](const auto &entry) { return entry.second.context.expired(); });
    if (std::shared_ptr<CudaContext> context = captures_[id].context.lock()) {
        return context;
    }
    const auto context = std::make_shared<CudaContext>(plan_);
    captures_[id].context = context;
    return context;
}

/// A graph that works in memory of ours holds it as long as it lives; others have nothing to hold.
void CudaExecutor::keep_captured(const std::shared_ptr<CudaContext> &context, CUstream stream) {
    const std::lock_guard lock(contexts_mutex_);
    if (!context->owns_memory() && !checks_indices_) {
        captured_.insert(context);
        return;
    }
    const CudaDriver &driver = CudaDriver::get();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    cuda_check(driver.stream_capture_info(stream, &status, &id, &graph, nullptr, nullptr), "asking whether a stream is captured");
    Capture &capture = captures_[id];
    if (capture.is_held) {
        return;
    }
    capture.is_held = true;
    CUuserObject object = nullptr;
    cuda_check(driver.user_object_create(&object, new CaptureUse{context}, end_capture_use, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
               "tying memory to a captured graph");
    cuda_check(driver.graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), "tying memory to a captured graph");
}

std::shared_ptr<CudaContext> CudaExecutor::acquire_own() {
    const std::lock_guard lock(contexts_mutex_);
    if (own_.empty()) {
        return std::make_shared<CudaContext>(plan_);
    }
    std::shared_ptr<CudaContext> context = std::move(own_.back());
    own_.pop_back();
    return context;
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
    const std::shared_ptr<CudaContext> context = given_stream != nullptr ? context_for(static_cast<CUstream>(given_stream), &capturing) : acquire_own();
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
            keep_captured(context, stream);
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
        const std::lock_guard lock(contexts_mutex_);
        own_.push_back(context);
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

Tensor CudaExecutor::upload(const HostTensor &tensor, const std::vector<std::int64_t> &strides, CUstream stream) const {
    Tensor result = to_tensor(tensor);
    const std::int64_t bytes = span_bytes(result.dtype, result.sizes, strides);
    Tensor staged = result;
    if (!same_layout(result.strides, strides, result.sizes)) {
        staged = allocate_tensor(result.dtype, result.sizes, strides);
        copy_strided(staged.data, strides, result.data, result.strides, result.sizes, size_in_bytes(result.dtype));
    }
    const auto memory = std::make_shared<DeviceMemory>(bytes);
    if (bytes > 0) {
        cuda_check(CudaDriver::get().copy_to_device(memory->address(), staged.data, static_cast<std::size_t>(bytes), stream), "copying an input");
        cuda_check(CudaDriver::get().stream_synchronize(stream), "copying an input");
    }
    result.strides = strides;
    result.data = memory->data();
    result.storage = memory;
    return result;
}

HostTensor CudaExecutor::download(const Tensor &tensor, CUstream stream) const {
    Tensor host = allocate_tensor(tensor.dtype, tensor.sizes, tensor.strides);
    const std::int64_t bytes = span_bytes(tensor.dtype, tensor.sizes, tensor.strides);
    if (bytes > 0) {
        cuda_check(CudaDriver::get().copy_to_host(host.data, reinterpret_cast<CUdeviceptr>(tensor.data), static_cast<std::size_t>(bytes), stream),
                   "copying an output");
        cuda_check(CudaDriver::get().stream_synchronize(stream), "copying an output");
    }
    return to_host_tensor(host);
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
