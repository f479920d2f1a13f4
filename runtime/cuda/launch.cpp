#include "runtime/cuda/launch.h"

#include <algorithm>
#include <cstring>

#include "dsl/error.h"

namespace tilewright {

namespace {

/// Whether a launch may start while the one before it ends: every kernel that lowering emits begins with tw::begin_launch(), which waits
/// for all that comes before it.
bool may_start_early() {
    static const bool may = [] {
        int major = 0;
        const CUdevice device = cuda_device().device;
        cuda_check(CudaDriver::get().device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                   "asking for the GPU's capability");
        return major >= 9;
    }();
    return may;
}

}  // namespace

CudaModule::CudaModule(const CodeObject &code) : name_(code.name) {
    cuda_device();
    cuda_check(CudaDriver::get().module_load_data(&module_, code.image.data()), fmt::format("loading kernel {}", name_));
}

CudaModule::~CudaModule() {
    if (module_ != nullptr) {
        CudaDriver::get().module_unload(module_);
    }
}

CUfunction CudaModule::function(const std::string &name, int dynamic_shared_bytes, bool large_cluster) const {
    const CudaDriver &driver = CudaDriver::get();
    CUfunction function = nullptr;
    cuda_check(driver.module_get_function(&function, module_, name.c_str()), fmt::format("finding function {} of kernel {}", name, name_));
    if (driver.function_load != nullptr) {  // now, not at the first launch, which may be inside a capture
        cuda_check(driver.function_load(function), fmt::format("loading function {} of kernel {}", name, name_));
    }
    if (dynamic_shared_bytes > 48 * 1024) {
        cuda_check(driver.function_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared_bytes),
                   fmt::format("giving {} bytes of shared memory to {}", dynamic_shared_bytes, name));
    }
    if (large_cluster) {
        cuda_check(driver.function_set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                   fmt::format("allowing a cluster of more than 8 blocks for {}", name));
    }
    return function;
}

CudaLaunch::CudaLaunch(const LaunchStep &step, const std::string &kernel, CUfunction function, const SymbolValues &symbols)
    : step_(&step),
      kernel_(kernel),
      function_(function),
      symbols_(symbols),
      parameters_(step.arguments.size()),
      offsets_(step.arguments.size(), 0) {
    for (int d = 0; d < 3; d++) {
        grid_[d] = step.grid[d].evaluate(symbols);
    }
    const std::array<std::int64_t, 3> limits = {0x7fffffff, 65535, 65535};
    for (int d = 0; d < 3; d++) {
        if (grid_[d] > limits[d]) {
            user_error("kernel {} needs {} blocks along grid dimension {}, the GPU allows {}; use smaller sizes", kernel, grid_[d], d,
                       limits[d]);
        }
    }
    for (std::size_t i = 0; i < step.arguments.size(); i++) {
        pointers_.push_back(parameters_[i].bytes);
        if (const auto *map = std::get_if<TensorMapArgument>(&step.arguments[i])) {
            maps_.push_back({i, map, 0});
        } else if (const auto *scalar = std::get_if<ScalarArgument>(&step.arguments[i])) {
            const std::int64_t value = scalar->value.evaluate(symbols);
            std::memcpy(parameters_[i].bytes, &value, static_cast<std::size_t>(scalar->bytes));  // little endian
        } else if (const auto *buffer = std::get_if<BufferArgument>(&step.arguments[i]); buffer != nullptr && buffer->view) {
            offsets_[i] = buffer->view->offset.evaluate(symbols) * size_in_bytes(buffer->view->dtype);
        }
    }
}

void CudaLaunch::enqueue(const LaunchPlaces &places, CUstream stream) {
    if (std::any_of(grid_.begin(), grid_.end(), [](std::int64_t n) { return n <= 0; })) {
        return;
    }
    std::size_t scratch = 0;
    for (std::size_t i = 0; i < step_->arguments.size(); i++) {
        CUdeviceptr address = 0;
        if (const auto *buffer = std::get_if<BufferArgument>(&step_->arguments[i])) {
            address = (*places.buffers)[buffer->buffer] + static_cast<CUdeviceptr>(offsets_[i]);
        } else if (std::holds_alternative<ScratchArgument>(step_->arguments[i])) {
            address = (*places.scratch)[scratch++];
        } else if (std::holds_alternative<StatusArgument>(step_->arguments[i])) {
            address = places.status;
        } else {
            continue;
        }
        std::memcpy(parameters_[i].bytes, &address, sizeof(address));
    }
    for (Map &map : maps_) {
        encode(map, (*places.buffers)[map.argument->buffer]);
    }
    CUlaunchAttribute attributes[3] = {};
    CUlaunchConfig config = {};
    config.gridDimX = static_cast<unsigned>(grid_[0]);
    config.gridDimY = static_cast<unsigned>(grid_[1]);
    config.gridDimZ = static_cast<unsigned>(grid_[2]);
    config.blockDimX = static_cast<unsigned>(step_->block[0]);
    config.blockDimY = static_cast<unsigned>(step_->block[1]);
    config.blockDimZ = static_cast<unsigned>(step_->block[2]);
    config.sharedMemBytes = static_cast<unsigned>(step_->dynamic_shared_bytes);
    config.hStream = stream;
    config.attrs = attributes;
    const auto &cluster = step_->cluster;
    if (cluster[0] * cluster[1] * cluster[2] > 1) {
        CUlaunchAttribute &attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {static_cast<unsigned>(cluster[0]), static_cast<unsigned>(cluster[1]),
                                      static_cast<unsigned>(cluster[2])};
    }
    if (step_->cooperative) {
        CUlaunchAttribute &attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
    }
    if (!step_->cooperative && may_start_early()) {
        CUlaunchAttribute &attribute = attributes[config.numAttrs++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    cuda_check(CudaDriver::get().launch_kernel(&config, function_, pointers_.data(), nullptr), fmt::format("launching kernel {}", kernel_));
}

void CudaLaunch::encode(Map &map, CUdeviceptr base) {
    if (map.encoded_for == base) {
        return;
    }
    const CUtensorMap encoded = encode_tensor_map(*map.argument, symbols_, base);
    static_assert(sizeof(encoded) == sizeof(Parameter));
    std::memcpy(parameters_[map.parameter].bytes, &encoded, sizeof(encoded));
    map.encoded_for = base;
}

}  // namespace tilewright
