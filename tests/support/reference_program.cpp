#include "tests/support/reference_program.h"

#include "dsl/capture/archive.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/translate.h"
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

/// Symbols from the sizes of the inputs that are given, where a size is a symbol alone.
void bind(const std::vector<Extent> &sizes, const std::vector<Extent> &given, SymbolValues &symbols) {
    for (std::size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i].kind() == Extent::Kind::symbol) {
            symbols[sizes[i].symbol_name()] = given.at(i).value();
        }
    }
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
    SymbolValues symbols;
    int next = 0;
    for (const InputSpec &spec : program.inputs) {
        if (spec.value) {
            inputs[spec.placeholder] = *spec.value;
        } else if (const TensorInput *input = translated.algorithm.find_input(spec.placeholder)) {
            const HostTensor *given = find(tensors, fmt::format("in{}", next++));
            internal_assert(given != nullptr, "{} has no in{}", path, next - 1);
            bind(input->meta.sizes, given->meta.sizes, symbols);
            inputs[spec.placeholder] = *given;
        }
    }
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
