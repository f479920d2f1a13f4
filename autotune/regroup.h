// Tries other groups of stages: joins that do not always pay, and the costliest kernels in parts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/partition_tuner.h"

namespace tilewright {

/// What was measured of groups that were not taken, by the hash of the kernel that they would have replaced: "in parts after exp: 61.0 us".
using FusionNotes = std::map<Hash, std::vector<std::string>>;

/// Tunes what the trials need beside what is known; the run's partition and schedules become those of the fastest.
FusionNotes regroup(TuningRun &run, PartitionTuner &tuner);

}  // namespace tilewright
