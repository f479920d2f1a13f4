#include "tests/support/gpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "dsl/error.h"
#include "lowering/cuda/compile.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/memory_plan.h"

namespace tilewright {

bool test_gpu_is_real() { return std::getenv("TILEWRIGHT_TEST_GPU") != nullptr; }

void use_test_gpu() {
    if (test_gpu_is_real()) {
        return;
    }
    const char *binaries = std::getenv("TILEWRIGHT_BINARY_DIR");
    const std::string path = std::string(binaries != nullptr ? binaries : "build") + "/emulated_driver/libcuda.so.1";
    // The dynamic linker gives later opens of libcuda.so.1 this one, which has that name.
    internal_assert(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr, "{} cannot be opened: build the target tests_emulated_driver",
                    path);
}

void launch_on_test_gpu(const std::string &source, const std::string &function, int blocks, int threads,
                        const std::vector<HostTensor> &inputs, std::vector<HostTensor> &outputs, int n) {
    use_test_gpu();
    static std::map<std::string, CudaModule> modules;
    auto module = modules.find(source);
    if (module == modules.end()) {
        module = modules.emplace(source, CudaModule(compile_cuda(function, source, cuda_device().architecture).code)).first;
    }
    const CudaStream stream;
    std::vector<DeviceMemory> memory;
    std::vector<CUdeviceptr> addresses;
    LaunchStep step;
    step.function = function;
    step.grid = {blocks, 1, 1};
    step.block = {threads, 1, 1};
    const auto add = [&](const HostTensor &tensor) {
        step.arguments.emplace_back(BufferArgument{static_cast<int>(memory.size()), false, std::nullopt});
        memory.emplace_back(static_cast<std::int64_t>(tensor.storage_bytes));
        addresses.push_back(memory.back().address());
        cuda_check(CudaDriver::get().copy_to_device(addresses.back(), tensor.data(), tensor.storage_bytes, stream.get()),
                   "copying an input");
    };
    for (const HostTensor &tensor : inputs) {
        add(tensor);
    }
    for (const HostTensor &tensor : outputs) {
        add(tensor);
    }
    step.arguments.emplace_back(ScalarArgument{n, 4});
    step.arguments.emplace_back(StatusArgument{});
    const PinnedMemory status(64);
    CudaLaunch(step, function, module->second.function(function, 0, false), {})
        .enqueue({&addresses, nullptr, status.device_address()}, stream.get());
    for (std::size_t i = 0; i < outputs.size(); i++) {
        cuda_check(
            CudaDriver::get().copy_to_host(outputs[i].mutable_data(), addresses[inputs.size() + i], outputs[i].storage_bytes, stream.get()),
            "copying an output");
    }
    stream.synchronize();
}

}  // namespace tilewright
