#include "autotune/inputs/tuning_sizes.h"

#include <map>

#include "autotune/inputs/given_sizes.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "lowering/assemble_plan.h"
#include "runtime/bind_symbols.h"
#include "runtime/host_memory.h"

namespace tilewright {
namespace {

/// What the sizes of in0, in1, … say.
SymbolValues sizes_of_inputs(const Program &program, const std::string &path) {
    const Signature signature = signature_of(program);
    Plan plan;  // the inputs alone
    plan.symbols = program.symbols;
    plan.inputs = program.inputs;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
        if (program.inputs[i].kind == InputKind::user_input && !program.inputs[i].constant) {
            plan.user_inputs.push_back(static_cast<int>(plan.buffers.size()));
            plan.buffers.push_back(
                {PlanBuffer::Kind::input, program.inputs[i].placeholder, signature.metas[i], static_cast<int>(plan.buffers.size())});
        }
    }
    std::map<std::string, HostTensor> named;
    for (auto &[name, tensor] : read_safetensors(path)) {
        named.emplace(name, std::move(tensor));
    }
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < plan.user_inputs.size(); ++i) {
        const auto found = named.find("in" + std::to_string(i));
        if (found == named.end()) {
            user_error("{}: there is no tensor \"in{}\"; the model has {} inputs, in0, in1, …", path, i, plan.user_inputs.size());
        }
        tensors.push_back(to_tensor(found->second));
    }
    return bind_symbols(plan, tensors);
}

}  // namespace

SymbolValues tuning_sizes(const Program &program, const Options &options) {
    SymbolValues values;
    if (!options.inputs.empty()) {
        values = sizes_of_inputs(program, options.inputs);
    }
    values.merge(usual_sizes(program.symbols));
    apply_sizes(options.sizes, program.symbols, values);
    return values;
}

}  // namespace tilewright
