#include "apps/tilewright/tensors.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "autotune/inputs/draw_inputs.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/host_memory.h"

namespace tilewright {

std::vector<HostTensor> read_numbered(const std::string &path, const std::string &prefix, int count) {
    std::map<std::string, HostTensor> named;
    int numbered = 0;
    for (auto &[name, tensor] : read_safetensors(path)) {
        numbered += name.starts_with(prefix) ? 1 : 0;
        named.emplace(name, std::move(tensor));
    }
    if (count >= 0 && named.contains(prefix + std::to_string(count))) {
        user_error("{}: the tensor \"{}{}\" is one too many; the model has {} of them", path, prefix, count, count);
    }
    std::vector<HostTensor> tensors;
    const int wanted = count >= 0 ? count : numbered;
    for (int i = 0; i < wanted; ++i) {
        const auto found = named.find(prefix + std::to_string(i));
        if (found == named.end()) {
            user_error("{}: there is no tensor \"{}{}\"; the model has {} of them, named {}0, {}1, …", path, prefix, i, wanted, prefix,
                       prefix);
        }
        tensors.push_back(found->second);
    }
    return tensors;
}

std::vector<HostTensor> given_or_drawn_inputs(const CommandLine &line, const Plan &plan) {
    return line.has("inputs") ? read_numbered(line.get<std::string>("inputs"), "in", static_cast<int>(plan.user_inputs.size()))
                              : draw_inputs(plan, parse_sizes(line.get<std::string>("sizes")));
}

std::string to_text(const SymbolValues &sizes) {
    std::string text;
    for (const auto &[symbol, size] : sizes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", symbol, size);
    }
    return text;
}

SymbolValues sizes_of(const Plan &plan, std::span<const HostTensor> inputs) {
    std::vector<Tensor> tensors;
    std::transform(inputs.begin(), inputs.end(), std::back_inserter(tensors), to_tensor);
    return bind_symbols(plan, tensors);
}

void write_numbered(const std::string &path, const std::string &prefix, std::span<const HostTensor> tensors) {
    NamedTensors named;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        named.emplace_back(prefix + std::to_string(i), tensors[i]);
    }
    write_safetensors(path, named);
}

}  // namespace tilewright
