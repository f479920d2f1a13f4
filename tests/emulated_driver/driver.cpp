// The CUDA driver's entry points that Tilewright's runtime uses, over the emulated device. Work is done when it is submitted, so waiting
// is never needed. A kernel's fault ends the process with its message, as a GPU's would poison the context.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "tests/emulated_driver/device.h"

using namespace emulated;

namespace {

struct Event {
    std::chrono::steady_clock::time_point time;
};
struct UserObject {
    void *value;
    CUhostFn destroy;
    ~UserObject() { destroy(value); }
};
cuuint64_t next_capture = 1;
int context_place = 0;
CUcontext the_context = reinterpret_cast<CUcontext>(&context_place);
thread_local CUcontext current_context = nullptr;

template<typename Work> CUresult guarded(Work &&work) {
    try {
        work();
        return CUDA_SUCCESS;
    } catch (const std::exception &fault) {
        std::fprintf(stderr, "emulated GPU: %s\n", fault.what());
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

}  // namespace

namespace {

tw::host::TensorMap *describe_tensor(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                     const cuuint64_t *strides, CUtensorMapSwizzle swizzle) {
    auto *described = new tw::host::TensorMap;  // kept: descriptors are few, and copies of the map refer to it
    const tilewright::EmulatedBuffer around = memory().around(address);
    described->base = static_cast<unsigned char *>(address);
    described->begin = reinterpret_cast<unsigned char *>(around.begin);
    described->end = reinterpret_cast<unsigned char *>(around.end);
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8:
            described->element_bytes = 1;
            break;
        case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            described->element_bytes = 2;
            break;
        case CU_TENSOR_MAP_DATA_TYPE_INT64:
        case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
            described->element_bytes = 8;
            break;
        default:
            described->element_bytes = 4;
    }
    described->rounds_to_tf32 = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    described->rank = static_cast<int>(rank);
    described->swizzle_bytes = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16 << static_cast<int>(swizzle);
    for (cuuint32_t d = 0; d < rank; d++) {
        described->sizes[d] = static_cast<long long>(sizes[d]);
        described->byte_strides[d] = d == 0 ? described->element_bytes : static_cast<long long>(strides[d - 1]);
    }
    std::memset(map, 0, sizeof(*map));
    std::memcpy(map, &described, sizeof(described));
    return described;
}

/// What the hardware demands of the tensor, and of a row of a box.
bool is_legal(const tw::host::TensorMap &map, const void *address) {
    bool legal = reinterpret_cast<std::uintptr_t>(address) % 16 == 0 && map.rank >= 1 && map.rank <= 5;
    for (int d = 1; d < map.rank; d++) {
        legal = legal && map.byte_strides[d] % 16 == 0;
    }
    return legal;
}
bool is_legal_row(const tw::host::TensorMap &map) {
    const unsigned bytes = map.box[0] * static_cast<unsigned>(map.element_bytes);
    return bytes % 16 == 0 && (map.swizzle_bytes == 0 || bytes <= static_cast<unsigned>(map.swizzle_bytes));
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
/// NVRTC asks for internals, and does without.
CUresult cuGetExportTable(const void **table, const CUuuid *) { return *table = nullptr, CUDA_ERROR_NOT_FOUND; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult result, const char **text) {
    return *text = result == CUDA_SUCCESS ? "no error" : "the emulation failed", CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char **text) { return *text = "EMULATED", CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *name, int length, CUdevice) { return std::snprintf(name, length, "host emulation"), CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice) { return *bytes = 1ULL << 34, CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = 132;
            break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            *value = 1 << 20;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            *value = 227 * 1024;
            break;
        default:
            *value = 0;
    }
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) { return *context = the_context, CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current_context, CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { return current_context = context, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

CUresult cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
    return *address = reinterpret_cast<CUdeviceptr>(memory().allocate(bytes)), CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
    return memory().release(reinterpret_cast<void *>(address)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemHostAlloc(void **address, std::size_t bytes, unsigned) { return *address = memory().allocate(bytes), CUDA_SUCCESS; }
CUresult cuMemFreeHost(void *address) { return memory().release(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned) {
    return *address = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t bytes, CUstream stream) {
    return submit(stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); }), CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return submit(stream, [=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); }), CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return submit(stream, [=] { std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes); }), CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
    return submit(stream, [=] { std::memset(reinterpret_cast<void *>(to), value, bytes); }), CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return guarded([&] { *module = reinterpret_cast<CUmodule>(new Module(static_cast<const char *>(image))); });
}
CUresult cuModuleUnload(CUmodule module) { return delete reinterpret_cast<Module *>(module), CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    const auto *loaded = reinterpret_cast<Module *>(module);
    if (!loaded->has(name)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    return *function = reinterpret_cast<CUfunction>(new Function{loaded, name}), CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) { return *value = 0, CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, std::size_t) { return *blocks = 1, CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **) {
    const auto *kernel = reinterpret_cast<Function *>(function);
    return guarded([&] { submit(config->hStream, kernel->module->prepare(kernel->name, *config, parameters)); });
}

CUresult cuStreamCreate(CUstream *stream, unsigned) { return *stream = reinterpret_cast<CUstream>(new Stream), CUDA_SUCCESS; }
CUresult cuStreamDestroy_v2(CUstream stream) { return delete reinterpret_cast<Stream *>(stream), CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { return stream_of(stream).recording ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
    Stream &s = stream_of(stream);
    s.recording = std::make_unique<Graph>();
    s.capture = next_capture++;
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    return *graph = reinterpret_cast<CUgraph>(stream_of(stream).recording.release()), CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **,
                                   std::size_t *) {
    const Stream &s = stream_of(stream);
    *status = s.recording ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *id = s.capture;
    *graph = reinterpret_cast<CUgraph>(s.recording.get());
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *) { return CUDA_SUCCESS; }

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
    return *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph *>(graph))), CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return guarded([&] {
        for (const auto &node : reinterpret_cast<Graph *>(exec)->nodes) {
            submit(stream, node);
        }
    });
}
CUresult cuGraphDestroy(CUgraph graph) { return delete reinterpret_cast<Graph *>(graph), CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec exec) { return delete reinterpret_cast<Graph *>(exec), CUDA_SUCCESS; }
CUresult cuUserObjectCreate(CUuserObject *object, void *value, CUhostFn destroy, unsigned, unsigned) {
    return *object = reinterpret_cast<CUuserObject>(new UserObject{value, destroy}), CUDA_SUCCESS;
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned, unsigned) {
    reinterpret_cast<Graph *>(graph)->retained.push_back(std::shared_ptr<UserObject>(reinterpret_cast<UserObject *>(object)));
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned) { return *event = reinterpret_cast<CUevent>(new Event), CUDA_SUCCESS; }
CUresult cuEventDestroy_v2(CUevent event) { return delete reinterpret_cast<Event *>(event), CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream) {
    return reinterpret_cast<Event *>(event)->time = std::chrono::steady_clock::now(), CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    const auto span = reinterpret_cast<Event *>(end)->time - reinterpret_cast<Event *>(start)->time;
    return *milliseconds = std::chrono::duration<float, std::milli>(span).count(), CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *, CUtensorMapInterleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    tw::host::TensorMap *described = describe_tensor(map, type, rank, address, sizes, strides, swizzle);
    bool legal = is_legal(*described, address);
    for (cuuint32_t d = 0; d < rank; d++) {
        described->box[d] = box[d];
        legal = legal && box[d] >= 1 && box[d] <= 256;
    }
    return legal && is_legal_row(*described) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                 const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
    tw::host::TensorMap *described = describe_tensor(map, type, rank, address, sizes, strides, swizzle);
    described->box[0] = channels;
    described->box[1] = pixels;
    described->space = static_cast<int>(rank) - 2;
    bool legal = is_legal(*described, address) && rank >= 3 && channels >= 1 && channels <= 256 && pixels >= 1 && pixels <= 1024;
    const int furthest = rank == 3 ? 32767 : rank == 4 ? 127 : 15;
    for (int d = 0; d < described->space; d++) {
        described->first[d] = lower[d];
        described->last[d] = upper[d] + described->sizes[d + 1] - 1;
        described->steps[d] = steps[d + 1];
        legal = legal && steps[d + 1] >= 1 && steps[d + 1] <= 8;
        legal = legal && std::min(lower[d], upper[d]) >= -furthest - 1 && std::max(lower[d], upper[d]) <= furthest;
    }
    return legal && is_legal_row(*described) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
