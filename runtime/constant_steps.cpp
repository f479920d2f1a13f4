// Steps that depend on weights alone run once, when a plan is loaded.
#include <algorithm>

#include "dsl/error.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

bool has_symbols(const std::vector<Extent> &extents) {
    return std::any_of(extents.begin(), extents.end(), [](const Extent &e) { return !e.is_constant(); });
}

bool can_run_once(const Plan &plan, const Step &step) {
    const auto constant = [](const StepArgument &argument) {
        const auto *scalar = std::get_if<ScalarArgument>(&argument);
        const auto *scratch = std::get_if<ScratchArgument>(&argument);
        return (!scalar || scalar->value.is_constant()) && !scratch;  // scratch memory may come from another launch of the same call
    };
    if (!step.when.empty() || !step.unless.empty()) {
        return false;
    }
    if (const auto *cpu = std::get_if<CpuStep>(&step.action)) {
        return std::all_of(cpu->arguments.begin(), cpu->arguments.end(), constant);
    }
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
        return std::all_of(launch->arguments.begin(), launch->arguments.end(), constant) &&
               std::all_of(launch->grid.begin(), launch->grid.end(), [](const Extent &e) { return e.is_constant(); });
    }
    if (const auto *graph = std::get_if<GraphEngineStep>(&step.action)) {
        return std::none_of(graph->tensors.begin(), graph->tensors.end(),
                            [](const EngineTensor &tensor) { return has_symbols(tensor.sizes); });
    }
    const auto &matmul = std::get<MatmulEngineStep>(step.action);
    return !has_symbols({matmul.batch, matmul.m, matmul.n, matmul.k});
}

}  // namespace

ConstantSteps find_constant_steps(const Plan &plan) {
    const std::size_t steps = plan.steps.size();
    const std::size_t buffers = plan.buffers.size();
    ConstantSteps result{std::vector<bool>(steps, true), std::vector<bool>(buffers, true)};

    std::vector<bool> weight(buffers, false);
    for (std::size_t b = 0; b < buffers; ++b) {
        weight[b] = plan.buffers[b].kind == PlanBuffer::Kind::weight;
    }
    for (const PlanBuffer &buffer : plan.buffers) {
        if (buffer.write_back_to >= 0) {
            weight[buffer.write_back_to] = false;  // state that runs change
        }
    }
    // What is kept must be an intermediate, and every step that writes it must be kept out of the runs: removing one removes others, until
    // nothing changes.
    for (std::size_t b = 0; b < buffers; ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        result.buffers[b] = buffer.kind == PlanBuffer::Kind::intermediate && buffer.write_back_to < 0 && buffer.alias_of < 0 &&
                            !has_symbols(buffer.meta.sizes) && !has_symbols(buffer.meta.strides);
    }
    for (const PlanBuffer &buffer : plan.buffers) {
        if (buffer.alias_of >= 0) {
            result.buffers[buffer.alias_of] = false;
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t s = 0; s < steps; ++s) {
            if (!result.steps[s]) {
                continue;
            }
            const std::vector<int> written = buffers_written_by(plan.steps[s]);
            const std::vector<int> used = buffers_of(plan.steps[s]);
            const bool constant = !written.empty() && can_run_once(plan, plan.steps[s]) &&
                                  std::all_of(used.begin(), used.end(), [&](int b) { return weight[b] || result.buffers[b]; }) &&
                                  std::none_of(written.begin(), written.end(), [&](int b) { return weight[b]; });
            if (!constant) {
                result.steps[s] = false;
                changed = true;
                for (int b : written) {
                    result.buffers[b] = false;
                }
            }
        }
    }
    std::vector<bool> produced(buffers, false);
    for (std::size_t s = 0; s < steps; ++s) {
        for (int b : buffers_written_by(plan.steps[s])) {
            produced[b] = produced[b] || result.steps[s];
        }
    }
    for (std::size_t b = 0; b < buffers; ++b) {
        result.buffers[b] = result.buffers[b] && produced[b];
    }
    return result;
}

}  // namespace tilewright
