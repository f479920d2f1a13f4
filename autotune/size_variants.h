// Schedules of kernels with symbolic extents for other sizes than those that the model is tuned for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/partition_tuner.h"

namespace tilewright {

/// What was found to be faster at some sizes than the schedule of the sizes that are tuned for.
struct SizedSchedule {
    SymbolValues sizes;
    Directives directives;
};

/// Variants by extent, those for other sizes first and the usual schedule as `else`. A boundary lies at the geometric mean of the extents
/// on its two sides. Sizes that no axis of a stage tells apart are left out.
std::vector<ScheduleVariant> variants_by_size(const Algorithm &algorithm, const SymbolValues &usual_sizes, const Directives &usual,
                                              const std::vector<SizedSchedule> &others);

struct SizeVariants {
    std::vector<ScheduleVariant> variants;
    std::vector<std::string> notes;  ///< "s0=8: 3.20 us, 4.10 us under the other schedule"
};

/// For kernels of the run's partition, by index, whose schedules are settled: each is searched at eighths and at eight times the sizes, in
/// what is left of the budget. Only kernels for which another schedule was clearly faster there are in the result.
std::map<std::size_t, SizeVariants> tune_other_sizes(TuningRun &run, PartitionTuner &tuner);

}  // namespace tilewright
