// Finds schedules for a model by measuring: builds candidates, times them one at a time, keeps the fastest, and writes a schedule file.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/options.h"

namespace tilewright {

/// What became of one kernel.
struct KernelOutcome {
    std::string kernel;
    int calls = 0;
    double default_seconds = 0;  ///< of one call; 0 where it could not be measured
    double best_seconds = 0;
    int candidates = 0;          ///< measured, now or before
    int failures = 0;            ///< did not build, gave other values, faulted or hung
    std::string remark;          ///< why it keeps its default schedule, or what it was taken apart from
};

struct TuningReport {
    std::string path;            ///< of the schedule file
    std::string target;
    ScheduleFile file;
    std::vector<KernelOutcome> kernels;
    int measured = 0;            ///< candidates timed by this run; the others came from the records
    bool interrupted = false;
};

struct TuningProgress {
    int kernel = 0, kernels = 0;         ///< the one being tuned, from 1
    std::string name;
    int built = 0, failed = 0, timed = 0;
    double best_seconds = 0;
    double elapsed = 0;                  ///< seconds since the start
};

struct TuningCallbacks {
    std::function<void(const TuningProgress &)> progress;
    const std::atomic<bool> *stop = nullptr;  ///< once true, the search ends and keeps the best so far
};

/// The schedule file is written whole each time that a kernel is done. UserError for what the archive, the target or the options get wrong.
TuningReport autotune(const std::string &archive, const Options &options, const TuningCallbacks &callbacks = {});

/// options.out, or MODEL.TARGET.schedule beside the archive: "bert.cpu.schedule", "bert.h200.schedule".
std::string schedule_path(const std::string &archive, const Options &options);

}  // namespace tilewright
