#include "runtime/cuda_driver.h"

#include <mutex>

#include "dsl/error.h"

namespace tilewright {

CudaDriver::CudaDriver() : library({"libcuda.so.1", "libcuda.so"}) {
    const auto load = [&]<typename Function>(Function *&into, const char *symbol) { into = library.function<Function>(symbol); };
    load(init, "cuInit");
    load(get_error_string, "cuGetErrorString");
    load(get_error_name, "cuGetErrorName");
    load(driver_version, "cuDriverGetVersion");
    load(device_get, "cuDeviceGet");
    load(device_count, "cuDeviceGetCount");
    load(device_name, "cuDeviceGetName");
    load(device_attribute, "cuDeviceGetAttribute");
    load(device_total_memory, "cuDeviceTotalMem_v2");
    load(primary_context_retain, "cuDevicePrimaryCtxRetain");
    load(context_get_current, "cuCtxGetCurrent");
    load(context_set_current, "cuCtxSetCurrent");
    load(context_get_device, "cuCtxGetDevice");
    load(context_synchronize, "cuCtxSynchronize");
    load(mem_alloc, "cuMemAlloc_v2");
    load(mem_free, "cuMemFree_v2");
    load(mem_host_alloc, "cuMemHostAlloc");
    load(mem_free_host, "cuMemFreeHost");
    load(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2");
    load(copy_to_device, "cuMemcpyHtoDAsync_v2");
    load(copy_to_host, "cuMemcpyDtoHAsync_v2");
    load(copy_on_device, "cuMemcpyDtoDAsync_v2");
    load(memset8, "cuMemsetD8Async");
    load(module_load_data, "cuModuleLoadData");
    load(module_unload, "cuModuleUnload");
    load(module_get_function, "cuModuleGetFunction");
    load(function_set_attribute, "cuFuncSetAttribute");
    load(function_get_attribute, "cuFuncGetAttribute");
    function_load = reinterpret_cast<CUresult (*)(CUfunction)>(library.find("cuFuncLoad"));
    load(launch_kernel, "cuLaunchKernelEx");
    load(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    load(stream_create, "cuStreamCreate");
    load(stream_destroy, "cuStreamDestroy_v2");
    load(stream_synchronize, "cuStreamSynchronize");
    load(stream_wait_event, "cuStreamWaitEvent");
    load(stream_begin_capture, "cuStreamBeginCapture_v2");
    load(stream_end_capture, "cuStreamEndCapture");
    load(stream_capture_info, "cuStreamGetCaptureInfo_v2");
    load(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    load(graph_instantiate, "cuGraphInstantiateWithFlags");
    load(graph_launch, "cuGraphLaunch");
    load(graph_destroy, "cuGraphDestroy");
    load(graph_exec_destroy, "cuGraphExecDestroy");
    load(user_object_create, "cuUserObjectCreate");
    load(graph_retain_user_object, "cuGraphRetainUserObject");
    load(event_create, "cuEventCreate");
    load(event_destroy, "cuEventDestroy_v2");
    load(event_record, "cuEventRecord");
    load(event_synchronize, "cuEventSynchronize");
    load(event_elapsed_time, "cuEventElapsedTime");
    load(tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
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
        user_error("no GPU answers: {}; run on a machine with one, or use --target cpu", words != nullptr ? words : "the driver does not start");
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

bool have_cuda_device(std::string *why_not) {
    try {
        cuda_device();
        return true;
    } catch (const UserError &error) {
        if (why_not != nullptr) {
            *why_not = error.what();
        }
        return false;
    }
}

}  // namespace tilewright
