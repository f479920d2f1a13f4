// Owned CUDA objects: device memory, page-locked host memory, streams, events and instantiated graphs.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/cuda/driver.h"

namespace tilewright {

/// While it lives, this thread may allocate although a stream of the process is being captured.
class AllowAllocationDuringCapture {
public:
    AllowAllocationDuringCapture();
    ~AllowAllocationDuringCapture();
    AllowAllocationDuringCapture(const AllowAllocationDuringCapture &) = delete;

private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// A piece of device memory, aligned to 256 bytes. `bytes` of 0 gives an address all the same.
class DeviceMemory {
public:
    DeviceMemory() = default;
    explicit DeviceMemory(std::int64_t bytes);
    ~DeviceMemory();
    DeviceMemory(DeviceMemory &&other) noexcept : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceMemory &operator=(DeviceMemory &&other) noexcept {
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    CUdeviceptr address() const { return address_; }
    std::byte *data() const { return reinterpret_cast<std::byte *>(address_); }
    std::int64_t bytes() const { return bytes_; }

private:
    CUdeviceptr address_ = 0;
    std::int64_t bytes_ = 0;
};

/// Page-locked memory that host and GPU both address; zeroed.
class PinnedMemory {
public:
    PinnedMemory() = default;
    explicit PinnedMemory(std::size_t bytes);
    ~PinnedMemory();
    PinnedMemory(PinnedMemory &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    PinnedMemory &operator=(PinnedMemory &&other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }

    std::byte *data() const { return static_cast<std::byte *>(data_); }
    CUdeviceptr device_address() const;

private:
    void *data_ = nullptr;
};

class CudaStream {
public:
    CudaStream();  ///< does not wait for the legacy default stream
    ~CudaStream();
    CudaStream(const CudaStream &) = delete;
    CUstream get() const { return stream_; }
    void synchronize() const;

private:
    CUstream stream_ = nullptr;
};

class CudaEvent {
public:
    explicit CudaEvent(bool timing = false);
    ~CudaEvent();
    CudaEvent(const CudaEvent &) = delete;
    CUevent get() const { return event_; }
    void record(CUstream stream) const;

private:
    CUevent event_ = nullptr;
};

/// Work recorded once and launched many times.
class CudaGraph {
public:
    CudaGraph() = default;
    /// Records what `enqueue(stream)` submits to `stream`, which must be idle and not the default stream.
    template<typename Enqueue> CudaGraph(CUstream stream, Enqueue &&enqueue) {
        begin(stream);
        try {
            enqueue(stream);
        } catch (...) {
            abandon(stream);
            throw;
        }
        end(stream);
    }
    ~CudaGraph();
    CudaGraph(CudaGraph &&other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
    CudaGraph &operator=(CudaGraph &&other) noexcept {
        std::swap(exec_, other.exec_);
        return *this;
    }
    void launch(CUstream stream) const;

private:
    static void begin(CUstream stream);
    static void abandon(CUstream stream);
    void end(CUstream stream);
    CUgraphExec exec_ = nullptr;
};

}  // namespace tilewright
