// Tunes a model: every kernel that runs more than once at load gets the schedule that was measured to be the fastest.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "autotune/search/records.h"
#include "autotune/search/search.h"
#include "dsl/schedule/schedule.h"
#include "lowering/options.h"

namespace tilewright {

struct TunedKernel {
    std::string name;
    int calls = 0;
    double default_seconds = 0;
    Measurement measurement;    ///< of the chosen schedule; seconds 0 where nothing was timed
    int candidates = 0;         ///< measured now
    bool from_records = false;  ///< an earlier search's result
    bool at_load = false;       ///< runs once, when the model is loaded: not tuned
};

struct TuneReport {
    ScheduleFile file;
    std::vector<TunedKernel> kernels;
    double model_default_seconds = 0, model_seconds = 0;  ///< of a whole run; 0 where it was not measured
    SymbolValues sizes;                                   ///< that were tuned for
    int measured = 0;                                     ///< candidates, those of kernels that were not chosen among them
    double seconds = 0;
    bool stopped = false;  ///< by `stop`
    bool timed = true;     ///< false where this machine cannot run the target's kernels
};

/// What is being done, told often.
struct TuneProgress {
    std::string kernel;
    int done = 0, kernels = 0;  ///< kernels whose search is over, of those that are tuned
    SearchCounts search;        ///< of this kernel, so far
    double elapsed = 0;         ///< seconds since the start
};
using TellProgress = std::function<void(const TuneProgress &)>;

/// `child`: the command of the measuring child. Once `stop` is set, what was found so far is returned. UserError as compile_archive().
TuneReport tune_archive(const std::string &archive, const Options &options, const std::vector<std::string> &child,
                        const std::atomic<bool> &stop, const TellProgress &tell);

/// Where the schedule file goes: `options.out`, or beside the archive, MODEL.cpu.schedule or MODEL.h200.schedule.
std::string schedule_path(const std::string &archive, const Options &options);

}  // namespace tilewright
