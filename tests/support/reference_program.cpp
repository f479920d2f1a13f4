#include "tests/support/reference_program.h"

#include "dsl/capture/archive.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/translate.h"
#include "runtime/bind_symbols.h"
#include "tests/support/operator_cases.h"
#include "tests/support/reference.h"

namespace tilewright::tests {

namespace {

const HostTensor *find(const NamedTensors &tensors, const std::string &name) {
    for (const auto &[key, tensor] : tensors) {
        if (key == name) {
            return &tensor;
        }
    }
    return nullptr;
}

/// The symbols' values as the runtime finds them.
SymbolValues symbols_of(const Program &program, const std::vector<const TensorInput *> &inputs,
                        const std::vector<const HostTensor *> &given) {
    Plan plan;
    plan.symbols = program.symbols;
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); i++) {
        plan.user_inputs.push_back(static_cast<int>(i));
        plan.buffers.push_back({PlanBuffer::Kind::input, inputs[i]->name(), inputs[i]->meta, static_cast<int>(i)});
        Tensor tensor;
        tensor.dtype = given[i]->meta.dtype;
        for (const Extent &size : given[i]->meta.sizes) {
            tensor.sizes.push_back(size.value());
        }
        tensors.push_back(tensor);
    }
    return bind_symbols(plan, tensors);
}

}  // namespace

std::vector<std::string> run_by_reference(const std::string &archive, const std::string &path, double tolerance,
                                          const std::optional<FusionOptions> &options) {
    Program program = read_archive(archive);
    functionalize(program);
    decompose(program);
    Translated translated = translate(program);
    verify(translated.algorithm);

    NamedTensors tensors = read_safetensors(path);
    std::map<std::string, HostTensor> inputs;
    std::vector<const TensorInput *> user_inputs;
    std::vector<const HostTensor *> user_tensors;
    int next = 0;
    for (const InputSpec &spec : program.inputs) {
        if (spec.value) {
            inputs[spec.placeholder] = *spec.value;
        } else if (const TensorInput *input = translated.algorithm.find_input(spec.placeholder)) {
            const HostTensor *given = find(tensors, fmt::format("in{}", next++));
            internal_assert(given != nullptr, "{} has no in{}", path, next - 1);
            user_inputs.push_back(input);
            user_tensors.push_back(given);
            inputs[spec.placeholder] = *given;
        }
    }
    SymbolValues symbols = symbols_of(program, user_inputs, user_tensors);
    ReferenceResult result = options ? evaluate(partition(translated.algorithm, *options), translated.algorithm, inputs, symbols)
                                     : evaluate(translated.algorithm, inputs, symbols);
    std::vector<std::string> differences;
    if (result.index_error) {
        return {"index out of range at " + translated.index_sites.at(static_cast<std::size_t>(result.index_error->site))};
    }
    int output = 0;
    for (std::size_t i = 0; i < program.outputs.size(); i++) {
        auto actual = result.outputs.find(fmt::format("out{}", i));
        if (program.outputs[i].kind != OutputKind::user_output || actual == result.outputs.end()) {
            continue;
        }
        const HostTensor *expected = find(tensors, fmt::format("out{}", output++));
        differences.push_back(expected ? difference(actual->second, *expected, tolerance, false) : "no expected value");
    }
    return differences;
}

}  // namespace tilewright::tests
