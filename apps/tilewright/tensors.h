// Inputs and outputs of models in safetensors files: in0…, out0….
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/tilewright/command.h"
#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// The tensors `prefix`0, `prefix`1, … of a file. UserError where the numbers have a gap or there are none but `count`, where that is
/// given.
std::vector<HostTensor> read_numbered(const std::string &path, const std::string &prefix, int count = -1);
/// What --inputs names; without it, values that are drawn for --sizes.
std::vector<HostTensor> given_or_drawn_inputs(const CommandLine &line, const Plan &plan);
/// "s0=64, s1=64": a model's symbolic sizes.
std::string to_text(const SymbolValues &sizes);
/// Those of a plan's inputs.
SymbolValues sizes_of(const Plan &plan, std::span<const HostTensor> inputs);
void write_numbered(const std::string &path, const std::string &prefix, std::span<const HostTensor> tensors);

}  // namespace tilewright
