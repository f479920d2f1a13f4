#include "lowering/fixed_inputs.h"

#include <algorithm>

namespace tilewright {

std::set<std::string> varying_tensors(const Program &program, const Partition &partition) {
    std::set<std::string> varying;
    for (const InputSpec &input : program.inputs) {
        if (input.kind == InputKind::user_input) {
            varying.insert(input.placeholder);
        }
    }
    for (const OutputSpec &output : program.outputs) {
        if (output.kind != OutputKind::user_output) {
            varying.insert(output.target);
        }
    }
    for (const KernelCall &call : partition.calls) {
        const bool reads_varying =
            std::any_of(call.inputs.begin(), call.inputs.end(), [&](const std::string &input) { return varying.contains(input); });
        if (reads_varying || !partition.kernels[call.kernel].algorithm.symbols.empty()) {
            varying.insert(call.outputs.begin(), call.outputs.end());
        }
    }
    return varying;
}

std::vector<FixedInputs> fixed_inputs(const Program &program, const Partition &partition) {
    const std::set<std::string> varying = varying_tensors(program, partition);
    std::vector<FixedInputs> fixed;
    for (const Kernel &kernel : partition.kernels) {
        fixed.emplace_back(kernel.algorithm.inputs.size(), true);
    }
    for (const KernelCall &call : partition.calls) {
        FixedInputs &inputs = fixed[call.kernel];
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            inputs[i] = inputs[i] && !varying.contains(call.inputs[i]);
        }
    }
    return fixed;
}

}  // namespace tilewright
