// The CUDA driver, opened while running: its functions, the device in use, and errors as exceptions.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "runtime/dynamic_library.h"

namespace tilewright {

/// Entry points of libcuda.so.1, under the names of cuda.h without their version suffix.
struct CudaDriver {
    /// UserError where there is no driver.
    static const CudaDriver &get();

    DynamicLibrary library;
    decltype(&::cuInit) init = nullptr;
    decltype(&::cuGetErrorString) get_error_string = nullptr;
    decltype(&::cuGetErrorName) get_error_name = nullptr;
    decltype(&::cuDriverGetVersion) driver_version = nullptr;
    decltype(&::cuDeviceGet) device_get = nullptr;
    decltype(&::cuDeviceGetCount) device_count = nullptr;
    decltype(&::cuDeviceGetName) device_name = nullptr;
    decltype(&::cuDeviceGetAttribute) device_attribute = nullptr;
    decltype(&::cuDeviceTotalMem) device_total_memory = nullptr;
    decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
    decltype(&::cuCtxGetCurrent) context_get_current = nullptr;
    decltype(&::cuCtxSetCurrent) context_set_current = nullptr;
    decltype(&::cuCtxGetDevice) context_get_device = nullptr;
    decltype(&::cuCtxSynchronize) context_synchronize = nullptr;
    decltype(&::cuMemAlloc) mem_alloc = nullptr;
    decltype(&::cuMemFree) mem_free = nullptr;
    decltype(&::cuMemHostAlloc) mem_host_alloc = nullptr;
    decltype(&::cuMemFreeHost) mem_free_host = nullptr;
    decltype(&::cuMemHostGetDevicePointer) mem_host_get_device_pointer = nullptr;
    decltype(&::cuMemcpyHtoDAsync) copy_to_device = nullptr;
    decltype(&::cuMemcpyDtoHAsync) copy_to_host = nullptr;
    decltype(&::cuMemcpyDtoDAsync) copy_on_device = nullptr;
    decltype(&::cuMemsetD8Async) memset8 = nullptr;
    decltype(&::cuModuleLoadData) module_load_data = nullptr;
    decltype(&::cuModuleUnload) module_unload = nullptr;
    decltype(&::cuModuleGetFunction) module_get_function = nullptr;
    decltype(&::cuFuncSetAttribute) function_set_attribute = nullptr;
    decltype(&::cuFuncGetAttribute) function_get_attribute = nullptr;
    CUresult (*function_load)(CUfunction) = nullptr;  ///< since 12.4; null before
    decltype(&::cuLaunchKernelEx) launch_kernel = nullptr;
    decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy = nullptr;
    decltype(&::cuStreamCreate) stream_create = nullptr;
    decltype(&::cuStreamDestroy) stream_destroy = nullptr;
    decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
    decltype(&::cuStreamWaitEvent) stream_wait_event = nullptr;
    decltype(&::cuStreamBeginCapture) stream_begin_capture = nullptr;
    decltype(&::cuStreamEndCapture) stream_end_capture = nullptr;
    CUresult (*stream_capture_info)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,
                                    std::size_t *) = nullptr;
    decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;
    decltype(&::cuGraphInstantiateWithFlags) graph_instantiate = nullptr;
    decltype(&::cuGraphLaunch) graph_launch = nullptr;
    decltype(&::cuGraphDestroy) graph_destroy = nullptr;
    decltype(&::cuGraphExecDestroy) graph_exec_destroy = nullptr;
    decltype(&::cuUserObjectCreate) user_object_create = nullptr;
    decltype(&::cuGraphRetainUserObject) graph_retain_user_object = nullptr;
    decltype(&::cuEventCreate) event_create = nullptr;
    decltype(&::cuEventDestroy) event_destroy = nullptr;
    decltype(&::cuEventRecord) event_record = nullptr;
    decltype(&::cuEventSynchronize) event_synchronize = nullptr;
    decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;
    decltype(&::cuTensorMapEncodeTiled) tensor_map_encode_tiled = nullptr;
    decltype(&::cuTensorMapEncodeIm2col) tensor_map_encode_im2col = nullptr;

private:
    CudaDriver();
};

/// Throws where `result` is an error: UserError for exhausted memory, else InternalError "doing WHAT: the driver's words".
void cuda_check(CUresult result, const std::string &what);

/// The GPU that this process computes on: the current context's, else the first. Facts as the driver gives them.
struct CudaDevice {
    CUdevice device = 0;
    CUcontext context = nullptr;  ///< the primary context, which the CUDA runtime and PyTorch use too
    std::string name;             ///< "NVIDIA H200"
    std::string architecture;     ///< "sm_90a": with the suffix where the chip has features of its own
    int multiprocessors = 0;
    std::int64_t l2_bytes = 0;
    std::int64_t memory_bytes = 0;
    int shared_per_block = 0;  ///< bytes, with opt-in
    int driver_version = 0;    ///< 13000 for 13.0
};
/// UserError where there is none. Makes its context current in the calling thread.
const CudaDevice &cuda_device();
/// Whether a GPU answers; the reason where none does.
bool have_cuda_device(std::string *why_not = nullptr);

}  // namespace tilewright
