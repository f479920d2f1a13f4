#include "autotune/kernels_at_load.h"

#include <algorithm>
#include <set>

namespace tilewright {

std::vector<bool> kernels_at_load(const Program &program, const Partition &partition) {
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
    std::vector<bool> at_load(partition.kernels.size(), true);
    for (const KernelCall &call : partition.calls) {
        const bool reads_varying = std::any_of(call.inputs.begin(), call.inputs.end(), [&](const std::string &input) { return varying.contains(input); });
        if (reads_varying || !partition.kernels[call.kernel].algorithm.symbols.empty()) {
            varying.insert(call.outputs.begin(), call.outputs.end());
            at_load[call.kernel] = false;
        }
    }
    return at_load;
}

}  // namespace tilewright
