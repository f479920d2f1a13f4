// Schedules of kernels that stream: two half-precision products joined by a softmax (attention).
#pragma once

#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/streaming/streaming_form.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// One choice of how the streamed axis is walked: keys a step, warpgroups of 64 rows, slots of the pipelines, planes side by side in the
/// grid, whether warpgroups multiply in turn, blocks of a multiprocessor, whether they stay and take one piece of work
/// after another, blocks that share the keys of a piece, whether exponentials are
/// taken while the last products are under way, and whether blocks that share keys are a cluster.
struct StreamTile {
    int keys = 128, warpgroups = 2, stages = 2, raster = 1;
    bool turns = true;
    int blocks = 1;
    bool persistent = false;
    int parts = 1;
    bool hides = false;
    bool cluster = false;
};
/// Every choice that fits registers and shared memory, the most promising first.
std::vector<StreamTile> stream_tiles(const StreamingForm &form, const Algorithm &algorithm, const GpuFacts &facts);
Directives streaming_schedule(const StreamingForm &form, const Algorithm &algorithm, const StreamTile &tile);

}  // namespace tilewright
