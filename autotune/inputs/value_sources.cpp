#include "autotune/inputs/value_sources.h"

#include "autotune/inputs/index_bounds.h"

namespace tilewright {

std::vector<std::string> value_sources(const Program &program, const Kernel &kernel, const KernelCall &call, const SymbolValues &symbols,
                                       bool have_values) {
    std::map<std::string, std::string> numbered;  // the model's own inputs
    for (const InputSpec &input : program.inputs) {
        if (have_values && input.kind == InputKind::user_input && !input.constant) {
            numbered[input.placeholder] = "in" + std::to_string(numbered.size());
        }
    }
    const std::map<std::string, std::int64_t> bounds = index_bounds(kernel.algorithm, symbols);
    std::vector<std::string> sources;
    for (std::size_t i = 0; i < kernel.algorithm.inputs.size(); ++i) {
        const auto own = numbered.find(call.inputs[i]);
        const auto bound = bounds.find(kernel.algorithm.inputs[i].name());
        sources.push_back(own != numbered.end() ? own->second : std::to_string(bound == bounds.end() ? 0 : bound->second));
    }
    return sources;
}

}  // namespace tilewright
