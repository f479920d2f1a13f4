#include "autotune/measure/kernel_plan.h"

#include "lowering/assemble_plan.h"

namespace tilewright {
namespace {

/// Evaluates every extent of a plan.
class SymbolBinder {
public:
    explicit SymbolBinder(const SymbolValues &symbols) : symbols_(symbols) {}

    void bind(Extent &extent) const { extent = Extent(extent.evaluate(symbols_)); }
    void bind(std::vector<Extent> &extents) const {
        for (Extent &extent : extents) {
            bind(extent);
        }
    }
    void bind(TensorMeta &meta) const {
        bind(meta.sizes);
        bind(meta.strides);
        bind(meta.offset);
    }
    void bind(ExtentConditions &conditions) const {
        for (ExtentCondition &condition : conditions) {
            bind(condition.extent);
        }
    }
    void bind(BufferArgument &argument) const {
        if (argument.view) {
            bind(*argument.view);
        }
    }
    void bind(ScalarArgument &argument) const { bind(argument.value); }
    void bind(TensorMapArgument &argument) const {
        bind(argument.sizes);
        bind(argument.byte_strides);
        bind(argument.element_offset);
    }
    void bind(StatusArgument &) const {}
    void bind(ScratchArgument &argument) const { bind(argument.bytes); }
    void bind(std::vector<StepArgument> &arguments) const {
        for (StepArgument &argument : arguments) {
            std::visit([this](auto &a) { bind(a); }, argument);
        }
    }
    void bind(CpuStep &step) const { bind(step.arguments); }
    void bind(LaunchStep &step) const {
        for (Extent &extent : step.grid) {
            bind(extent);
        }
        bind(step.arguments);
    }
    void bind(MatmulEngineStep &step) const {
        for (Extent *extent :
             {&step.batch, &step.m, &step.n, &step.k, &step.a_offset, &step.b_offset, &step.bias_offset, &step.d_offset, &step.a_row_stride,
              &step.b_row_stride, &step.d_row_stride, &step.a_batch_stride, &step.b_batch_stride, &step.d_batch_stride}) {
            bind(*extent);
        }
    }
    void bind(GraphEngineStep &step) const {
        for (EngineTensor &tensor : step.tensors) {
            bind(tensor.sizes);
            bind(tensor.strides);
            bind(tensor.offset);
        }
    }

private:
    const SymbolValues &symbols_;
};

}  // namespace

void bind_symbols(Plan &plan, const SymbolValues &symbols) {
    const SymbolBinder binder(symbols);
    for (PlanBuffer &buffer : plan.buffers) {
        binder.bind(buffer.meta);
    }
    for (Step &step : plan.steps) {
        std::visit([&](auto &action) { binder.bind(action); }, step.action);
        binder.bind(step.when);
        for (ExtentConditions &conditions : step.unless) {
            binder.bind(conditions);
        }
    }
    plan.symbols.clear();
}

Plan kernel_plan(const Kernel &kernel, const CompiledKernel &compiled, const FixedInputs &fixed, const SymbolValues &symbols,
                 const Target &target) {
    Plan plan = plan_of_kernel(target.kind, target.device, kernel, compiled, fixed);
    bind_symbols(plan, symbols);
    return plan;
}

}  // namespace tilewright
