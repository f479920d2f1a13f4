#include "autotune/kernels_at_load.h"

#include <algorithm>

#include "lowering/fixed_inputs.h"

namespace tilewright {

std::vector<bool> kernels_at_load(const Program &program, const Partition &partition) {
    const std::set<std::string> varying = varying_tensors(program, partition);
    std::vector<bool> at_load(partition.kernels.size(), true);
    for (const KernelCall &call : partition.calls) {
        const bool varies =
            std::any_of(call.outputs.begin(), call.outputs.end(), [&](const std::string &output) { return varying.contains(output); });
        at_load[call.kernel] = at_load[call.kernel] && !varies;
    }
    return at_load;
}

}  // namespace tilewright
