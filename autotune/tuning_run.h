// What the parts of one tuning share: the model, the machine, the records, the measuring child and the time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/measuring_child.h"
#include "autotune/search/compiling_children.h"
#include "autotune/search/kernel_runner.h"
#include "autotune/search/plan_folder.h"
#include "autotune/search/records.h"
#include "autotune/tune.h"
#include "lowering/pipeline.h"

namespace tilewright {

struct TuningRun {
    using Clock = std::chrono::steady_clock;

    TuningRun(const std::string &archive, const Options &options, const std::vector<std::string> &child, const std::atomic<bool> &stop,
              const TellProgress &tell);

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - started).count(); }
    double budget() const;  ///< seconds; infinity where there is no limit
    double search_end() const {
        return (symbols.empty() ? 0.85 : 0.6) * budget();
    }  ///< the rest is for the model as a whole, and for other sizes
    double sizes_end() const { return 0.9 * budget(); }
    Clock::time_point at(double seconds) const;  ///< the moment when the run is that old
    bool may_measure() const { return !stop && !only_records && why_untimed.empty(); }

    /// What times depend on beside kernel and schedule.
    std::string machine() const;
    std::string key_of(const Kernel &kernel) const { return key_of(kernel, symbols); }
    std::string key_of(const Kernel &kernel, const SymbolValues &sizes) const;

    const Clock::time_point started = Clock::now();
    const std::string archive;
    const Options &options;
    const std::atomic<bool> &stop;
    const TellProgress &tell;
    Compilation compilation;  ///< up to the schedules; the partition and its schedules become those that were found
    SymbolValues symbols;     ///< sizes that are tuned for
    Records records;
    MeasuringChild child;
    PlanFolder folder;
    int jobs;
    std::unique_ptr<CompilingChildren> compilers;  ///< for a GPU
    boost::asio::thread_pool builders;             ///< compile candidates; they live as long as the children that they start
    RunnerContext runners;
    std::string model_key;      ///< of the kernels and schedules that the search starts from
    std::string why_untimed;    ///< nothing can be timed on this machine, and why; empty: everything can
    bool only_records = false;  ///< the same search was made before: nothing is measured
};

/// 16 hexadecimal digits.
std::string text_hash(const std::string &text);

}  // namespace tilewright
