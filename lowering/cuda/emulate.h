// Runs emitted CUDA kernels on the host: the system's C++ compiler builds them against the device header's second implementation, a
// block's threads are fibers. Every access is held against its buffer, every barrier against divergence, shared memory against races.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "dsl/error.h"
#include "lowering/cuda/device/host/runtime.h"

namespace tilewright {

/// What a kernel did that a GPU would punish or leave undefined.
class EmulationFault : public InternalError {
public:
    using InternalError::InternalError;
};

/// Element 0 of a tensor, and the allocation around it.
struct EmulatedBuffer {
    std::byte *address = nullptr;
    std::byte *begin = nullptr;
    std::byte *end = nullptr;
};
/// A pointer that is passed as it is: the status flag.
struct EmulatedPointer {
    void *address = nullptr;
};
using EmulatedArgument = std::variant<EmulatedBuffer, EmulatedPointer, std::int64_t, tw::host::TensorMap>;

struct EmulatedLaunch {
    std::string function;
    std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
    int dynamic_shared_bytes = 0;
    bool cooperative = false;  ///< all blocks at once
    std::vector<EmulatedArgument> arguments = {};
};

struct KernelSource {
    std::string name;  ///< for messages
    std::string text;
    std::vector<std::string> functions;  ///< the __global__ functions in it, extern "C"
};

/// The extern "C" __global__ functions of a source.
std::vector<std::string> kernel_functions(const std::string &source);

/// Kernels compiled for the host. Builds are kept under the cache folder by content. One launch at a time in a process.
class EmulatedModule {
public:
    explicit EmulatedModule(const std::vector<KernelSource> &sources);
    ~EmulatedModule();
    EmulatedModule(const EmulatedModule &) = delete;
    EmulatedModule &operator=(const EmulatedModule &) = delete;

    /// What a function's parameters are, one letter each: b(uffer), p(ointer), 4 or 8 bytes of integer, o(bject).
    std::string signature(const std::string &function) const;

    /// Runs every block. EmulationFault names kernel, block, thread and what went wrong.
    void launch(const EmulatedLaunch &launch) const;

private:
    struct Library;
    std::unique_ptr<Library> library_;
};

}  // namespace tilewright
