// Finds the schedules of a partition's kernels; equal kernels of several partitions are searched once.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search/kernel_runner.h"
#include "autotune/search/search.h"
#include "autotune/tuning_run.h"
#include "lowering/fixed_inputs.h"

namespace tilewright {

/// What is known of a kernel.
struct Outcome {
    Directives directives;
    Measurement measurement;
    Directives default_directives;
    double default_seconds = 0;
    int candidates = 0;
    bool from_records = false;

    double seconds() const { return measurement.is_good() && measurement.seconds > 0 ? measurement.seconds : default_seconds; }
};

class PartitionTuner {
public:
    explicit PartitionTuner(TuningRun &run) : run_(run) {}

    /// Afterwards every kernel that can be tuned has an outcome. `until`: seconds of the run. Where the default schedules together take
    /// longer than `hopeless` seconds nothing is searched, and false is returned.
    bool tune(const Partition &partition, const std::vector<KernelSchedule> &schedules, double until,
              double hopeless = std::numeric_limits<double>::infinity());

    /// A kernel of the run's partition at other sizes than those that are tuned for, `start` as its default. Nothing where there is no time
    /// left.
    std::optional<Outcome> search_at(std::size_t kernel, const Directives &start, const SymbolValues &sizes, double until);

    /// Null where the kernel was not tuned.
    const Outcome *outcome(const Kernel &kernel) const;
    /// Seconds of all calls of each kernel; 0 where it is not known.
    std::vector<double> costs(const Partition &partition) const;
    /// Of all calls but those at load; 0 where one is not known.
    double total(const Partition &partition) const;
    /// What no schedules can beat: the roofline's time of kernels that are not known, the found time of the others.
    double least_total(const Partition &partition) const;
    int measured() const;     ///< candidates, in this run
    bool any_failed() const;  ///< some kernel's default schedule could not be measured

private:
    /// A kernel whose search is still to be made.
    struct Work {
        const Kernel *kernel = nullptr;
        int calls = 0;
        std::string key;
        Directives start;
        double default_seconds = 0;
        Measurement default_measurement;
        std::unique_ptr<KernelRunner> runner;

        double weight() const { return default_seconds * calls; }
    };

    std::vector<Work> collect(const Partition &partition, const std::vector<KernelSchedule> &schedules);
    std::vector<FixedInputs> fixed_of(const Partition &partition) const;
    std::vector<std::string> sources_of(const Partition &partition, int kernel, const FixedInputs &fixed, const SymbolValues &sizes) const;
    void measure_defaults(std::vector<Work> &works, double until);
    void time_default(Work &work, Candidate candidate);
    void search_all(std::vector<Work> &works, double until);
    void search(Work &work, double until);
    std::optional<Outcome> known(const std::string &key, const Directives &start);
    SearchResult search_kernel_at(const Kernel &kernel, const Directives &start, KernelRunner &runner, const std::string &key,
                                  const SymbolValues &sizes, double until);
    void store(const std::string &key, const Directives &start, const SearchResult &result);
    void finish(const Work &work, const SearchResult &result);
    void tell(const std::string &kernel, const SearchCounts &search) const;

    TuningRun &run_;
    std::map<std::string, Outcome> outcomes_;  ///< by key_of()
    std::map<std::string, int> measured_;      ///< defaults, by key_of()
    int measured_at_other_sizes_ = 0;
    int done_ = 0, to_do_ = 0;  ///< kernels of the partition that is tuned
};

std::vector<int> count_calls(const Partition &partition);

}  // namespace tilewright
