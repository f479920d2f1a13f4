// The search over one kernel's schedules.
#pragma once

#include <string>
#include <vector>

#include "autotune/autotune.h"
#include "autotune/measure.h"
#include "autotune/records.h"
#include "lowering/fusion/kernel.h"
#include "lowering/target.h"

namespace tilewright {

/// What the searches of a run share.
struct SearchContext {
    const Target &target;
    const Options &options;
    TuningRecords &records;
    MeasureOptions measure;
    bool only_records = false;            ///< a finished search: nothing is measured
    std::function<bool()> out_of_time;    ///< the budget is spent, or the user stopped
    std::function<void(int built, int failed, int timed, double best)> progress;
    int measured = 0;                     ///< counts up
};

struct KernelResult {
    Directives best;
    KernelOutcome outcome;
};

/// Measures the first candidates; with `climb`, goes on from the best by single moves until none helps.
KernelResult search_kernel(const Kernel &kernel, SearchContext &context, bool climb);

/// What tells one kernel's measurements from another's: algorithm and extents.
std::string kernel_key(const Kernel &kernel);

}  // namespace tilewright
