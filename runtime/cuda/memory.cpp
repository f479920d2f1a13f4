#include "runtime/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "dsl/error.h"

namespace tilewright {

AllowAllocationDuringCapture::AllowAllocationDuringCapture() {
    cuda_check(CudaDriver::get().exchange_capture_mode(&mode_), "allowing allocations during a capture");
}

AllowAllocationDuringCapture::~AllowAllocationDuringCapture() { CudaDriver::get().exchange_capture_mode(&mode_); }

namespace {

/// Whole units, as the driver gives them: kernels read aligned words of which some byte belongs to a tensor.
std::size_t allocated_bytes(std::int64_t wanted) {
    constexpr std::int64_t unit = 256;
    return static_cast<std::size_t>(std::max((wanted + unit - 1) / unit, std::int64_t{1}) * unit);
}

}  // namespace

DeviceMemory::DeviceMemory(std::int64_t bytes) : bytes_(bytes) {
    cuda_device();
    const AllowAllocationDuringCapture allow;
    cuda_check(CudaDriver::get().mem_alloc(&address_, allocated_bytes(bytes)), fmt::format("allocating {} MB on the GPU", bytes / 1000000));
}

DeviceMemory::~DeviceMemory() {
    if (address_ != 0) {
        CudaDriver::get().mem_free(address_);
    }
}

PinnedMemory::PinnedMemory(std::size_t bytes) {
    cuda_device();
    const AllowAllocationDuringCapture allow;
    cuda_check(CudaDriver::get().mem_host_alloc(&data_, bytes > 0 ? bytes : 1, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
               "allocating page-locked memory");
    std::memset(data_, 0, bytes);
}

PinnedMemory::~PinnedMemory() {
    if (data_ != nullptr) {
        CudaDriver::get().mem_free_host(data_);
    }
}

CUdeviceptr PinnedMemory::device_address() const {
    CUdeviceptr address = 0;
    cuda_check(CudaDriver::get().mem_host_get_device_pointer(&address, data_, 0), "mapping page-locked memory");
    return address;
}

CudaStream::CudaStream() {
    cuda_device();
    const AllowAllocationDuringCapture allow;
    cuda_check(CudaDriver::get().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
}

CudaStream::~CudaStream() { CudaDriver::get().stream_destroy(stream_); }

void CudaStream::synchronize() const { cuda_check(CudaDriver::get().stream_synchronize(stream_), "running on the GPU"); }

CudaEvent::CudaEvent(bool timing) {
    cuda_device();
    const AllowAllocationDuringCapture allow;
    cuda_check(CudaDriver::get().event_create(&event_, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "creating an event");
}

CudaEvent::~CudaEvent() { CudaDriver::get().event_destroy(event_); }

void CudaEvent::record(CUstream stream) const { cuda_check(CudaDriver::get().event_record(event_, stream), "recording an event"); }

void CudaGraph::begin(CUstream stream) {
    cuda_check(CudaDriver::get().stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "recording a graph");
}

void CudaGraph::abandon(CUstream stream) {
    CUgraph graph = nullptr;
    CudaDriver::get().stream_end_capture(stream, &graph);
    if (graph != nullptr) {
        CudaDriver::get().graph_destroy(graph);
    }
}

void CudaGraph::end(CUstream stream) {
    CUgraph graph = nullptr;
    cuda_check(CudaDriver::get().stream_end_capture(stream, &graph), "recording a graph");
    const CUresult result = CudaDriver::get().graph_instantiate(&exec_, graph, 0);
    CudaDriver::get().graph_destroy(graph);
    cuda_check(result, "instantiating a graph");
}

CudaGraph::~CudaGraph() {
    if (exec_ != nullptr) {
        CudaDriver::get().graph_exec_destroy(exec_);
    }
}

void CudaGraph::launch(CUstream stream) const { cuda_check(CudaDriver::get().graph_launch(exec_, stream), "launching a graph"); }

}  // namespace tilewright
