#include "runtime/cuda/driver.h"

#include <mutex>

#include "dsl/error.h"
#include "runtime/usable.h"

namespace tilewright {

CudaDriver::CudaDriver() : library({"libcuda.so.1", "libcuda.so"}) {
    init = library["cuInit"];
    get_error_string = library["cuGetErrorString"];
    get_error_name = library["cuGetErrorName"];
    driver_version = library["cuDriverGetVersion"];
    device_get = library["cuDeviceGet"];
    device_count = library["cuDeviceGetCount"];
    device_name = library["cuDeviceGetName"];
    device_attribute = library["cuDeviceGetAttribute"];
    device_total_memory = library["cuDeviceTotalMem_v2"];
    primary_context_retain = library["cuDevicePrimaryCtxRetain"];
    context_get_current = library["cuCtxGetCurrent"];
    context_set_current = library["cuCtxSetCurrent"];
    context_get_device = library["cuCtxGetDevice"];
    context_synchronize = library["cuCtxSynchronize"];
    mem_alloc = library["cuMemAlloc_v2"];
    mem_free = library["cuMemFree_v2"];
    mem_host_alloc = library["cuMemHostAlloc"];
    mem_free_host = library["cuMemFreeHost"];
    mem_host_get_device_pointer = library["cuMemHostGetDevicePointer_v2"];
    copy_to_device = library["cuMemcpyHtoDAsync_v2"];
    copy_to_host = library["cuMemcpyDtoHAsync_v2"];
    copy_on_device = library["cuMemcpyDtoDAsync_v2"];
    memset8 = library["cuMemsetD8Async"];
    module_load_data = library["cuModuleLoadData"];
    module_unload = library["cuModuleUnload"];
    module_get_function = library["cuModuleGetFunction"];
    function_set_attribute = library["cuFuncSetAttribute"];
    function_get_attribute = library["cuFuncGetAttribute"];
    function_load = reinterpret_cast<CUresult (*)(CUfunction)>(library.find("cuFuncLoad"));
    launch_kernel = library["cuLaunchKernelEx"];
    occupancy = library["cuOccupancyMaxActiveBlocksPerMultiprocessor"];
    stream_create = library["cuStreamCreate"];
    stream_destroy = library["cuStreamDestroy_v2"];
    stream_synchronize = library["cuStreamSynchronize"];
    stream_wait_event = library["cuStreamWaitEvent"];
    stream_begin_capture = library["cuStreamBeginCapture_v2"];
    stream_end_capture = library["cuStreamEndCapture"];
    stream_capture_info = library["cuStreamGetCaptureInfo_v2"];
    exchange_capture_mode = library["cuThreadExchangeStreamCaptureMode"];
    graph_instantiate = library["cuGraphInstantiateWithFlags"];
    graph_launch = library["cuGraphLaunch"];
    graph_destroy = library["cuGraphDestroy"];
    graph_exec_destroy = library["cuGraphExecDestroy"];
    user_object_create = library["cuUserObjectCreate"];
    graph_retain_user_object = library["cuGraphRetainUserObject"];
    event_create = library["cuEventCreate"];
    event_destroy = library["cuEventDestroy_v2"];
    event_record = library["cuEventRecord"];
    event_synchronize = library["cuEventSynchronize"];
    event_elapsed_time = library["cuEventElapsedTime"];
    tensor_map_encode_tiled = library["cuTensorMapEncodeTiled"];
    tensor_map_encode_im2col = library["cuTensorMapEncodeIm2col"];
}

const CudaDriver &CudaDriver::get() {
    static const CudaDriver driver;
    return driver;
}

void cuda_check(CUresult result, const std::string &what) {
    if (result == CUDA_SUCCESS) {
        return;
    }
    const char *words = nullptr;
    const char *name = nullptr;
    CudaDriver::get().get_error_string(result, &words);
    CudaDriver::get().get_error_name(result, &name);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        user_error("{}: the GPU's memory is exhausted; free some, or use smaller sizes", what);
    }
    internal_error("{}: {} ({})", what, words != nullptr ? words : "unknown error", name != nullptr ? name : "?");
}

namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
    int value = 0;
    cuda_check(CudaDriver::get().device_attribute(&value, which, device), "reading an attribute of the GPU");
    return value;
}

CudaDevice open_device() {
    const CudaDriver &driver = CudaDriver::get();
    if (const CUresult result = driver.init(0); result != CUDA_SUCCESS) {
        const char *words = nullptr;
        driver.get_error_string(result, &words);
        user_error("no GPU answers: {}; run on a machine with one, or use --target cpu",
                   words != nullptr ? words : "the driver does not start");
    }
    int count = 0;
    cuda_check(driver.device_count(&count), "counting GPUs");
    if (count == 0) {
        user_error("the CUDA driver sees no GPU; look at CUDA_VISIBLE_DEVICES, or use --target cpu");
    }
    CudaDevice result;
    CUcontext current = nullptr;
    if (driver.context_get_current(&current) == CUDA_SUCCESS && current != nullptr) {
        cuda_check(driver.context_get_device(&result.device), "asking for the current GPU");
    } else {
        cuda_check(driver.device_get(&result.device, 0), "opening the first GPU");
    }
    cuda_check(driver.primary_context_retain(&result.context, result.device), "opening the GPU's context");
    char name[256] = {};
    cuda_check(driver.device_name(name, sizeof(name), result.device), "asking for the GPU's name");
    result.name = name;
    const int major = attribute(result.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = attribute(result.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    // The emulated driver of the tests, which runs kernels on the host, says that it has no capability.
    result.architecture = major == 0 ? "host" : fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
    result.multiprocessors = attribute(result.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    result.l2_bytes = attribute(result.device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    result.shared_per_block = attribute(result.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    std::size_t memory = 0;
    cuda_check(driver.device_total_memory(&memory, result.device), "asking for the GPU's memory");
    result.memory_bytes = static_cast<std::int64_t>(memory);
    cuda_check(driver.driver_version(&result.driver_version), "asking for the driver's version");
    return result;
}

}  // namespace

const CudaDevice &cuda_device() {
    static const CudaDevice device = open_device();
    thread_local bool current = false;
    if (!current) {
        CUcontext context = nullptr;
        CudaDriver::get().context_get_current(&context);
        if (context != device.context) {
            cuda_check(CudaDriver::get().context_set_current(device.context), "entering the GPU's context");
        }
        current = true;
    }
    return device;
}

bool have_cuda_device(std::string *why_not) { return is_usable(cuda_device, why_not); }

}  // namespace tilewright
