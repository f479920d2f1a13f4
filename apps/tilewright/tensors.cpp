#include "apps/tilewright/tensors.h"

#include <map>

#include "dsl/capture/safetensors.h"
#include "dsl/error.h"

namespace tilewright {

std::vector<HostTensor> read_numbered(const std::string &path, const std::string &prefix, int count) {
    std::map<std::string, HostTensor> named;
    int numbered = 0;
    for (auto &[name, tensor] : read_safetensors(path)) {
        numbered += name.starts_with(prefix) ? 1 : 0;
        named.emplace(name, std::move(tensor));
    }
    std::vector<HostTensor> tensors;
    const int wanted = count >= 0 ? count : numbered;
    for (int i = 0; i < wanted; ++i) {
        const auto found = named.find(prefix + std::to_string(i));
        if (found == named.end()) {
            user_error("{}: there is no tensor \"{}{}\"; the model has {} of them, named {}0, {}1, …", path, prefix, i, wanted, prefix, prefix);
        }
        tensors.push_back(found->second);
    }
    return tensors;
}

void write_numbered(const std::string &path, const std::string &prefix, std::span<const HostTensor> tensors) {
    NamedTensors named;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        named.emplace_back(prefix + std::to_string(i), tensors[i]);
    }
    write_safetensors(path, named);
}

}  // namespace tilewright
