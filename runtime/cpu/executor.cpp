// The CPU executor: weights in place, a pool of prepared contexts for each binding of the symbols.
#include <algorithm>
#include <list>
#include <mutex>
#include <shared_mutex>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/cpu/context.h"
#include "runtime/executor.h"
#include "runtime/host_memory.h"
#include "runtime/strided_copy.h"

namespace tilewright {
namespace {

constexpr std::size_t idle_contexts = 32;  ///< kept for later runs; each holds an arena

class CpuExecutor final : public Executor {
public:
    explicit CpuExecutor(Plan plan);
    std::vector<Tensor> run(std::span<const Tensor> inputs, void *) override { return run_timed(inputs, nullptr); }
    std::vector<HostTensor> run_host(std::span<const HostTensor> inputs, std::vector<HostTensor> *mutated) override;
    std::vector<double> profile(std::span<const HostTensor> inputs, int repeats) override;
    const Plan &plan() const override { return plan_; }

private:
    std::vector<Tensor> run_timed(std::span<const Tensor> inputs, std::vector<double> *seconds);
    std::unique_ptr<CpuContext> acquire(const SymbolValues &symbols);
    void release(std::unique_ptr<CpuContext> context);
    void bind_weights();
    void run_constant_steps();
    Tensor tensor_of(int buffer, const CpuContext &context, std::span<const Tensor> inputs) const;
    void write_back(const CpuContext &context, std::span<const Tensor> inputs) const;
    std::vector<Tensor> collect_outputs(const CpuContext &context, std::span<const Tensor> inputs, const std::vector<Tensor> &owned) const;

    Plan plan_;
    std::vector<CpuCode> code_;  ///< of each of the plan's code objects
    ConstantSteps constant_;
    std::vector<std::byte *> fixed_;                 ///< addresses of weights and constants, by buffer
    std::vector<std::shared_ptr<std::byte>> owned_;  ///< memory behind some of them
    std::vector<bool> mutated_;                      ///< buffers that runs write back to
    bool has_state_ = false;                         ///< runs change a weight, so only one may run at a time
    std::mutex state_;
    std::mutex pool_mutex_;
    std::list<std::unique_ptr<CpuContext>> pool_;  ///< most recently used first
};

CpuExecutor::CpuExecutor(Plan plan) : plan_(std::move(plan)), constant_(find_constant_steps(plan_)) {
    for (CodeObject &object : plan_.code) {
        code_.push_back(CpuCode::load(object.image, object.name));
    }
    mutated_.assign(plan_.buffers.size(), false);
    for (const PlanBuffer &buffer : plan_.buffers) {
        if (buffer.write_back_to >= 0) {
            mutated_[buffer.write_back_to] = true;
            has_state_ = has_state_ || plan_.buffers[buffer.write_back_to].kind == PlanBuffer::Kind::weight;
        }
    }
    bind_weights();
    run_constant_steps();
}

void CpuExecutor::bind_weights() {
    fixed_.assign(plan_.buffers.size(), nullptr);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        const PlanBuffer &buffer = plan_.buffers[b];
        if (buffer.kind != PlanBuffer::Kind::weight) {
            continue;
        }
        const std::optional<HostTensor> &value = plan_.inputs[buffer.index].value;
        internal_assert(value.has_value(), "weight \"{}\" has no value", buffer.name);
        Tensor weight = to_tensor(*value);
        if (mutated_[b]) {
            weight = clone(weight);
            owned_.push_back(std::static_pointer_cast<std::byte>(weight.storage));
        }
        fixed_[b] = weight.data;
    }
}

void CpuExecutor::run_constant_steps() {
    if (std::find(constant_.steps.begin(), constant_.steps.end(), true) == constant_.steps.end()) {
        return;
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        if (constant_.buffers[b]) {
            const TensorMeta &meta = plan_.buffers[b].meta;
            owned_.push_back(
                allocate_host(static_cast<std::size_t>(span_bytes(meta.dtype, evaluate(meta.sizes, {}), evaluate(meta.strides, {})))));
            fixed_[b] = owned_.back().get();
        }
    }
    SymbolValues smallest;  // constant steps read no symbol; the others' sizes only have to exist
    for (const auto &[symbol, range] : plan_.symbols) {
        smallest[symbol] = range.min;
    }
    CpuContext(plan_, code_, std::make_shared<CpuShape>(plan_, smallest, constant_.buffers), fixed_).run(plan_, constant_.steps, true);
}

std::unique_ptr<CpuContext> CpuExecutor::acquire(const SymbolValues &symbols) {
    std::shared_ptr<const CpuShape> shape;
    {
        const std::lock_guard lock(pool_mutex_);
        const auto found = std::find_if(pool_.begin(), pool_.end(), [&](const auto &c) { return c->shape().symbols == symbols; });
        if (found != pool_.end()) {
            std::unique_ptr<CpuContext> context = std::move(*found);
            pool_.erase(found);
            return context;
        }
    }
    shape = std::make_shared<CpuShape>(plan_, symbols, constant_.buffers);
    return std::make_unique<CpuContext>(plan_, code_, std::move(shape), fixed_);
}

void CpuExecutor::release(std::unique_ptr<CpuContext> context) {
    const std::lock_guard lock(pool_mutex_);
    pool_.push_front(std::move(context));
    if (pool_.size() > idle_contexts) {
        pool_.pop_back();
    }
}

std::vector<Tensor> CpuExecutor::run_timed(std::span<const Tensor> inputs, std::vector<double> *seconds) {
    std::unique_lock<std::mutex> exclusive(state_, std::defer_lock);
    if (has_state_) {
        exclusive.lock();
    }
    std::unique_ptr<CpuContext> context = acquire(bind_symbols(plan_, inputs));
    const CpuShape &shape = context->shape();

    std::vector<Tensor> held;  // inputs brought into the layout that the code was compiled for
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const int buffer = plan_.user_inputs[i];
        std::byte *data = inputs[i].data;
        if (!same_layout(inputs[i].strides, shape.strides[buffer], shape.sizes[buffer])) {
            held.push_back(allocate_tensor(inputs[i].dtype, shape.sizes[buffer], shape.strides[buffer]));
            copy_strided(held.back().data, held.back().strides, data, inputs[i].strides, inputs[i].sizes, size_in_bytes(inputs[i].dtype));
            data = held.back().data;
        }
        context->set_address(buffer, data);
    }
    std::vector<Tensor> owned(plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        const PlanBuffer &buffer = plan_.buffers[b];
        if (buffer.kind == PlanBuffer::Kind::output && buffer.alias_of < 0) {
            owned[b] = allocate_tensor(buffer.meta.dtype, shape.sizes[b], shape.strides[b]);
            context->set_address(static_cast<int>(b), owned[b].data);
        }
    }
    context->run(plan_, constant_.steps, false, seconds);
    std::vector<Tensor> outputs = collect_outputs(*context, inputs, owned);
    write_back(*context, inputs);
    release(std::move(context));
    return outputs;
}

Tensor CpuExecutor::tensor_of(int buffer, const CpuContext &context, std::span<const Tensor> inputs) const {
    const PlanBuffer &b = plan_.buffers[buffer];
    if (b.kind == PlanBuffer::Kind::input) {
        return inputs[b.index];
    }
    const CpuShape &shape = context.shape();
    return {b.meta.dtype, shape.sizes[buffer], shape.strides[buffer], context.address(buffer), nullptr};
}

std::vector<Tensor> CpuExecutor::collect_outputs(const CpuContext &context, std::span<const Tensor> inputs,
                                                 const std::vector<Tensor> &owned) const {
    std::vector<Tensor> outputs;
    for (const int output : plan_.user_outputs) {
        const int owner = plan_.buffers[output].alias_of;
        if (owner < 0) {
            outputs.push_back(owned[output]);
        } else if (plan_.buffers[owner].kind == PlanBuffer::Kind::output) {
            outputs.push_back(owned[owner]);
        } else if (plan_.buffers[owner].kind == PlanBuffer::Kind::input) {
            outputs.push_back(inputs[plan_.buffers[owner].index]);
        } else {
            outputs.push_back(clone(tensor_of(owner, context, inputs)));  // our memory, which later runs use again
        }
    }
    return outputs;
}

void CpuExecutor::write_back(const CpuContext &context, std::span<const Tensor> inputs) const {
    // Every value is taken before the first is written: an input may be another's new value.
    std::vector<std::pair<int, Tensor>> values;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        const PlanBuffer &buffer = plan_.buffers[b];
        if (buffer.write_back_to < 0) {
            continue;
        }
        const int owner = buffer.alias_of < 0 ? static_cast<int>(b) : buffer.alias_of;
        const Tensor value = tensor_of(owner, context, inputs);
        values.emplace_back(buffer.write_back_to, mutated_[owner] ? clone(value) : value);
    }
    for (const auto &[target, value] : values) {
        const Tensor to = tensor_of(target, context, inputs);
        copy_strided(to.data, to.strides, value.data, value.strides, value.sizes, size_in_bytes(value.dtype));
    }
}

std::vector<HostTensor> CpuExecutor::run_host(std::span<const HostTensor> inputs, std::vector<HostTensor> *mutated) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Tensor tensor = to_tensor(inputs[i]);
        const bool written = i < plan_.user_inputs.size() && mutated_[plan_.user_inputs[i]];
        tensors.push_back(written ? clone(tensor) : tensor);
    }
    std::vector<HostTensor> outputs;
    for (const Tensor &output : run_timed(tensors, nullptr)) {
        outputs.push_back(to_host_tensor(output));
    }
    if (mutated) {
        mutated->clear();
        for (const Tensor &tensor : tensors) {
            mutated->push_back(to_host_tensor(tensor));
        }
    }
    return outputs;
}

std::vector<double> CpuExecutor::profile(std::span<const HostTensor> inputs, int repeats) {
    std::vector<Tensor> tensors;
    for (const HostTensor &input : inputs) {
        tensors.push_back(clone(to_tensor(input)));  // a run may write them
    }
    std::vector<double> least(plan_.steps.size(), 0);
    for (int i = 0; i < repeats + 1; ++i) {
        std::vector<double> seconds(plan_.steps.size(), 0);
        run_timed(tensors, &seconds);
        for (std::size_t s = 0; i > 0 && s < seconds.size(); ++s) {  // the first run warms up
            least[s] = i == 1 ? seconds[s] : std::min(least[s], seconds[s]);
        }
    }
    return least;
}

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(Plan plan) {
    verify(plan);
    return std::make_unique<CpuExecutor>(std::move(plan));
}

}  // namespace tilewright
