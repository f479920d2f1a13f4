// What a tuning found, as a schedule file with notes and the figures that the command shows.
#pragma once

#include "autotune/partition_tuner.h"
#include "autotune/regroup.h"
#include "autotune/size_variants.h"
#include "autotune/tune.h"
#include "autotune/whole_model.h"

namespace tilewright {

/// What was found beside the kernels' schedules.
struct TuneFindings {
    FusionNotes fusion;
    ModelTimes model;
    std::map<std::size_t, SizeVariants> sizes;  ///< by kernel
};

/// Compiles the kernels that nobody timed, for their registers.
void add_resources(const TuningRun &run, TuneReport &report);

TuneReport report_tuning(TuningRun &run, const PartitionTuner &tuner, const TuneFindings &findings);

}  // namespace tilewright
