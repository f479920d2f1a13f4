// How long work on the GPU takes: recorded as a graph, replayed from a cold, clean second cache, the median of many.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/memory.h"

namespace tilewright {

struct TimingOptions {
    int rounds = 15;             ///< replays of each candidate that count
    double warm_seconds = 0.02;  ///< of replays before, which raise the clocks
    double limit_seconds = 5.0;  ///< stop adding rounds after this long
};

/// Submits the work of one candidate to a stream, without waiting.
using Enqueue = std::function<void(CUstream)>;

/// Times candidates in turn, round after round, so that drifts of the clocks fall on all alike.
class CudaTimer {
public:
    CudaTimer();
    ~CudaTimer();

    /// Median microseconds of each candidate.
    std::vector<double> time(const std::vector<Enqueue> &candidates, const TimingOptions &options = {});
    double time(const Enqueue &candidate, const TimingOptions &options = {});

private:
    void flush_cache();

    CudaStream stream_;
    DeviceMemory flush_;
    CudaEvent start_{true}, end_{true};
    std::unique_ptr<struct CacheSweep> sweep_;
};

}  // namespace tilewright
