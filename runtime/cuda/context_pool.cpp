#include "runtime/cuda/context_pool.h"

#include <algorithm>

namespace tilewright {

namespace {

constexpr std::size_t kept_streams = 16;

/// What a captured graph holds of us, which tells when it goes.
struct CaptureUse {
    std::shared_ptr<CudaContext> context;
};
void end_capture_use(void *use) { delete static_cast<CaptureUse *>(use); }

/// The capture that a stream is in.
struct StreamCapture {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
};

StreamCapture capture_of(CUstream stream) {
    StreamCapture capture;
    cuda_check(CudaDriver::get().stream_capture_info(stream, &capture.status, &capture.id, &capture.graph, nullptr, nullptr),
               "asking whether a stream is captured");
    return capture;
}

}  // namespace

std::shared_ptr<CudaContext> CudaContextPool::of_stream(CUstream stream, bool *capturing) {
    const StreamCapture capture = capture_of(stream);
    *capturing = capture.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const std::lock_guard lock(mutex_);
    if (!*capturing) {
        return of_plain_stream(stream);
    }
    std::erase_if(captures_, [](const auto &entry) { return entry.second.context.expired(); });
    if (std::shared_ptr<CudaContext> context = captures_[capture.id].context.lock()) {
        return context;
    }
    const auto context = std::make_shared<CudaContext>(plan_);
    captures_[capture.id].context = context;
    return context;
}

std::shared_ptr<CudaContext> CudaContextPool::of_plain_stream(CUstream stream) {
    const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto &entry) { return entry.first == stream; });
    if (found != streams_.end()) {
        streams_.splice(streams_.begin(), streams_, found);
    } else {
        streams_.emplace_front(stream, std::make_shared<CudaContext>(plan_));
        if (streams_.size() > kept_streams) {
            cuda_check(CudaDriver::get().context_synchronize(), "running on the GPU");
            streams_.pop_back();
        }
    }
    return streams_.front().second;
}

void CudaContextPool::keep_captured(const std::shared_ptr<CudaContext> &context, CUstream stream, bool uses_memory) {
    const std::lock_guard lock(mutex_);
    if (!uses_memory) {
        captured_.insert(context);
        return;
    }
    const StreamCapture capture = capture_of(stream);
    Capture &known = captures_[capture.id];
    if (known.is_held) {
        return;
    }
    known.is_held = true;
    const CudaDriver &driver = CudaDriver::get();
    CUuserObject object = nullptr;
    cuda_check(driver.user_object_create(&object, new CaptureUse{context}, end_capture_use, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
               "tying memory to a captured graph");
    cuda_check(driver.graph_retain_user_object(capture.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), "tying memory to a captured graph");
}

std::shared_ptr<CudaContext> CudaContextPool::take_idle() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
        return std::make_shared<CudaContext>(plan_);
    }
    std::shared_ptr<CudaContext> context = std::move(idle_.back());
    idle_.pop_back();
    return context;
}

void CudaContextPool::give_back(std::shared_ptr<CudaContext> context) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
}

}  // namespace tilewright
