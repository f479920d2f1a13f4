// Whether what was found for each kernel alone is faster in the whole model, where caches are warm and launches follow each other.
#pragma once

#include "autotune/partition_tuner.h"

namespace tilewright {

/// Seconds of a run; 0 where it was not measured.
struct ModelTimes {
    double default_seconds = 0, tuned_seconds = 0;
};

/// Gives the run's kernels the schedules of their outcomes. A model of several calls is then timed as a whole against `groups` under their
/// default `schedules`; where it is not faster, the kernels that slow it down get their default schedules back, or all of them.
ModelTimes settle_model(TuningRun &run, const PartitionTuner &tuner, const Partition &groups, const std::vector<KernelSchedule> &schedules);

}  // namespace tilewright
