#include "lowering/renumber_step.h"

namespace tilewright {
namespace {

void renumber(std::vector<StepArgument> &arguments, const Renumbering &renumbering) {
    for (StepArgument &argument : arguments) {
        if (auto *buffer = std::get_if<BufferArgument>(&argument)) {
            renumbering.tensor(*buffer);
        } else if (auto *map = std::get_if<TensorMapArgument>(&argument)) {
            renumbering.elements(map->buffer, map->element_offset);
        }
    }
}

}  // namespace

void renumber(Step &step, const Renumbering &renumbering) {
    if (auto *cpu = std::get_if<CpuStep>(&step.action)) {
        cpu->code += renumbering.code_base;
        renumber(cpu->arguments, renumbering);
    } else if (auto *launch = std::get_if<LaunchStep>(&step.action)) {
        launch->code += renumbering.code_base;
        renumber(launch->arguments, renumbering);
    } else if (auto *graph = std::get_if<GraphEngineStep>(&step.action)) {
        for (EngineTensor &tensor : graph->tensors) {
            renumbering.elements(tensor.buffer, tensor.offset);
        }
    } else {
        auto &matmul = std::get<MatmulEngineStep>(step.action);
        for (auto [tensor, offset] : {std::pair(&matmul.a, &matmul.a_offset),
                                      {&matmul.b, &matmul.b_offset},
                                      {&matmul.bias, &matmul.bias_offset},
                                      {&matmul.d, &matmul.d_offset}}) {
            if (*tensor >= 0) {
                renumbering.elements(*tensor, *offset);
            }
        }
    }
}

}  // namespace tilewright
