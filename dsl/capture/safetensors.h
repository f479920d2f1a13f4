// Reads and writes safetensors files: named tensors with a JSON header.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dsl/graph/tensor.h"

namespace tilewright {

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

/// The tensors in the header's order, contiguous, mapped from the file. UserError names the file, the tensor and what is wrong.
NamedTensors read_safetensors(const std::string &path);

/// Writes the file whole or not at all. Tensors that are not contiguous are written as if they were.
void write_safetensors(const std::string &path, const NamedTensors &tensors);

}  // namespace tilewright
