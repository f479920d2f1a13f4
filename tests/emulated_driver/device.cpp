#include "tests/emulated_driver/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulated {

void *Memory::allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + 255) / 256 * 256;
    auto *block = static_cast<std::byte *>(std::aligned_alloc(256, whole));
    std::memset(block, 0x7f, whole);  // what nobody wrote should not look right
    const std::lock_guard lock(mutex_);
    blocks_.emplace(block, bytes);
    return block;
}

bool Memory::release(void *address) {
    const std::lock_guard lock(mutex_);
    const bool known = blocks_.erase(static_cast<std::byte *>(address)) > 0;
    if (known) {
        std::free(address);
    }
    return known;
}

tilewright::EmulatedBuffer Memory::around(void *address) const {
    auto *place = static_cast<std::byte *>(address);
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(place);
    if (after == blocks_.begin()) {
        return {place, place, place};
    }
    const auto &[begin, bytes] = *std::prev(after);
    return place <= begin + bytes ? tilewright::EmulatedBuffer{place, begin, begin + bytes}
                                  : tilewright::EmulatedBuffer{place, place, place};
}

Memory &memory() {
    static auto *instance = new Memory;  // outlives static objects that free device memory
    return *instance;
}

Stream &stream_of(CUstream handle) {
    static Stream standard;
    return reinterpret_cast<std::uintptr_t>(handle) <= 2 ? standard : *reinterpret_cast<Stream *>(handle);
}

void submit(CUstream stream, std::function<void()> work) {
    Stream &s = stream_of(stream);
    if (s.recording) {
        s.recording->nodes.push_back(std::move(work));
    } else {
        work();
    }
}

Module::Module(const char *image) {
    const std::string text = image;
    if (text.find(".visible .entry") != std::string::npos) {
        functions_ = {"strided_copy", "sweep"};
        return;
    }
    functions_ = tilewright::kernel_functions(text);
    kernels_ = std::make_shared<tilewright::EmulatedModule>(std::vector<tilewright::KernelSource>{{functions_.front(), text, functions_}});
}

bool Module::has(const std::string &function) const {
    return std::find(functions_.begin(), functions_.end(), function) != functions_.end();
}

std::function<void()> Module::prepare(const std::string &function, const CUlaunchConfig &config, void **parameters) const {
    if (!kernels_) {
        return prepare_own(function, parameters);
    }
    tilewright::EmulatedLaunch launch{.function = function,
                                      .grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                                      .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                                      .dynamic_shared_bytes = static_cast<int>(config.sharedMemBytes)};
    for (unsigned i = 0; i < config.numAttrs; i++) {
        const CUlaunchAttribute &attribute = config.attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            launch.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z};
        } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            launch.cooperative = attribute.value.cooperative != 0;
        }
    }
    const std::string kinds = kernels_->signature(function);
    for (std::size_t i = 0; i < kinds.size(); i++) {
        void *raw = parameters[i];
        if (kinds[i] == 'b') {
            launch.arguments.emplace_back(memory().around(*static_cast<void **>(raw)));
        } else if (kinds[i] == 'p') {
            launch.arguments.emplace_back(tilewright::EmulatedPointer{*static_cast<void **>(raw)});
        } else if (kinds[i] == '4') {
            launch.arguments.emplace_back(std::int64_t{*static_cast<std::int32_t *>(raw)});
        } else if (kinds[i] == '8') {
            launch.arguments.emplace_back(*static_cast<std::int64_t *>(raw));
        } else {
            tw::host::TensorMap *map = nullptr;  // cuTensorMapEncodeTiled put its address there
            std::memcpy(&map, raw, sizeof(map));
            launch.arguments.emplace_back(*map);
        }
    }
    return [kernels = kernels_, launch = std::move(launch)] { kernels->launch(launch); };
}

/// The runtime's own kernels, in C++: a copy between layouts, and the sweep through memory, which has no effect.
std::function<void()> Module::prepare_own(const std::string &function, void **parameters) const {
    if (function == "sweep") {
        return [] {};
    }
    struct Layout {
        std::int64_t sizes[16], to[16], from[16], rank, bytes;
    };
    auto *to = *static_cast<std::byte **>(parameters[0]);
    auto *from = *static_cast<std::byte **>(parameters[1]);
    return [to, from, layout = *static_cast<Layout *>(parameters[2])] {
        for (std::int64_t i = 0; i < layout.bytes; i++) {
            std::int64_t rest = i, x = 0, y = 0;
            for (std::int64_t d = 0; d < layout.rank; d++) {
                x += rest % layout.sizes[d] * layout.to[d];
                y += rest % layout.sizes[d] * layout.from[d];
                rest /= layout.sizes[d];
            }
            to[x] = from[y];
        }
    };
}

}  // namespace emulated
