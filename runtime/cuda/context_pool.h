// The contexts of one executor: one for each stream, one for each capture of a caller, and idle ones for runs that bring no stream.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cuda/context.h"

namespace tilewright {

/// Several threads may ask at once.
class CudaContextPool {
public:
    explicit CudaContextPool(const Plan &plan) : plan_(plan) {}

    /// The context of runs on this stream, or of the capture that it is in; `capturing` says which. The streams used last keep theirs.
    std::shared_ptr<CudaContext> of_stream(CUstream stream, bool *capturing);
    /// Keeps the context of a captured run alive: as long as the graph that is captured where that works in the context's memory, else as
    /// long as the pool.
    void keep_captured(const std::shared_ptr<CudaContext> &context, CUstream stream, bool uses_memory);

    /// One that no other run uses; give_back() when the run is complete.
    std::shared_ptr<CudaContext> take_idle();
    void give_back(std::shared_ptr<CudaContext> context);

private:
    struct Capture {
        std::weak_ptr<CudaContext> context;
        bool is_held = false;  ///< by the graph
    };
    std::shared_ptr<CudaContext> of_plain_stream(CUstream stream);

    const Plan &plan_;
    std::mutex mutex_;
    std::list<std::pair<CUstream, std::shared_ptr<CudaContext>>> streams_;  ///< most recently used first
    std::map<cuuint64_t, Capture> captures_;
    std::set<std::shared_ptr<CudaContext>> captured_;  ///< whose memory no captured graph works in
    std::vector<std::shared_ptr<CudaContext>> idle_;
};

}  // namespace tilewright
