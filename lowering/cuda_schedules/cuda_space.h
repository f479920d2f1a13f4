// Schedules of a kernel that are worth measuring: the search space of the autotuner on a GPU, read off the algorithm alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lowering/cuda_schedules/product_schedule.h"
#include "lowering/cuda_schedules/schedule_choice.h"
#include "lowering/cuda_schedules/streaming_schedule.h"

namespace tilewright {

/// The default schedule first, then others, which the lowering may refuse; no two are equal.
std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts);

/// Proposes schedules of one kernel, and knows what each was made of: a search may go on from any of them.
class CudaSpace {
public:
    CudaSpace(const Kernel &kernel, const GpuFacts &facts);

    /// cuda_candidates().
    std::vector<Directives> first();
    /// One number of a proposal changed; empty for a schedule that is none.
    std::vector<Directives> around(const Directives &proposal);
    /// The proposal with its registers bounded so that one, two and three more blocks fit on a multiprocessor than do with `registers` a
    /// thread, which fill `occupancy` percent of it; only bounds that leave more than half of the registers. Empty for a schedule that is
    /// no proposal.
    std::vector<Directives> denser(const Directives &proposal, int registers, int occupancy);

private:
    Directives make(const ScheduleChoice &choice);
    Directives make(const ProductTile &tile);
    Directives make(const StreamTile &tile);

    const Kernel &kernel_;
    const GpuFacts &facts_;
    const std::optional<MatrixProduct> product_;
    const std::optional<StreamingForm> streaming_;
    std::vector<ProductTile> product_tiles_;
    std::vector<StreamTile> stream_tiles_;
    std::map<std::string, ScheduleChoice> choices_;  ///< by text
    std::map<std::string, ProductTile> products_;    ///< likewise
    std::map<std::string, StreamTile> streams_;      ///< likewise
};

}  // namespace tilewright
