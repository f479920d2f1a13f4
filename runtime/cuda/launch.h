// Kernels of a plan on the GPU: modules, and launches with their parameters resolved for one binding of the symbols.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/plan.h"

namespace tilewright {

/// A cubin loaded into the GPU's context.
class CudaModule {
public:
    explicit CudaModule(const CodeObject &code);
    ~CudaModule();
    CudaModule(CudaModule &&other) noexcept : module_(std::exchange(other.module_, nullptr)), name_(std::move(other.name_)) {}
    CudaModule &operator=(CudaModule &&) = delete;

    /// Ready to launch with this much dynamic shared memory.
    CUfunction function(const std::string &name, int dynamic_shared_bytes, bool large_cluster) const;

private:
    CUmodule module_ = nullptr;
    std::string name_;
};

/// Where the arguments of a step find what they refer to.
struct LaunchPlaces {
    const std::vector<CUdeviceptr> *buffers = nullptr;  ///< element 0 of each of the plan's buffers
    const std::vector<CUdeviceptr> *scratch = nullptr;  ///< of each of the step's ScratchArguments, in order
    CUdeviceptr status = 0;
};

/// One launch for one binding of the symbols. Parameters are filled in for each run.
class CudaLaunch {
public:
    CudaLaunch(const LaunchStep &step, const std::string &kernel, CUfunction function, const SymbolValues &symbols);

    /// Submits the kernel; nothing where its grid is empty.
    void enqueue(const LaunchPlaces &places, CUstream stream);

private:
    struct alignas(64) Parameter {
        unsigned char bytes[128];
    };
    struct Map {
        std::size_t parameter = 0;
        const TensorMapArgument *argument = nullptr;
        CUdeviceptr encoded_for = 0;
    };
    void encode(Map &map, CUdeviceptr base);

    const LaunchStep *step_;
    std::string kernel_;
    CUfunction function_;
    SymbolValues symbols_;
    std::array<std::int64_t, 3> grid_{};
    std::vector<Parameter> parameters_;
    std::vector<std::int64_t> offsets_;  ///< bytes from a buffer's element 0 to what each argument sees of it
    std::vector<void *> pointers_;
    std::vector<Map> maps_;
};

/// Which swizzle, element type and so on of cuda.h a descriptor means; UserError where the unit cannot do it.
CUtensorMap encode_tensor_map(const TensorMapArgument &argument, const SymbolValues &symbols, CUdeviceptr base);

}  // namespace tilewright
