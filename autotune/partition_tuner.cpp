#include "autotune/partition_tuner.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <spdlog/spdlog.h>
#include <utility>

#include "autotune/inputs/value_sources.h"
#include "autotune/kernels_at_load.h"
#include "autotune/measure/roofline.h"
#include "autotune/search/space.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

constexpr int idle_without_budget = 4;  ///< expansions of a kernel's search without a gain

/// An entry with variants is somebody's choice for several sizes, and stays.
bool is_tunable(const KernelSchedule &schedule) { return schedule.variants.size() == 1 && schedule.variants[0].conditions.empty(); }

/// A search also depends on where it starts.
std::string search_key(const std::string &key, const Directives &start) { return key + " from " + text_hash(print(start)); }

}  // namespace

std::vector<int> count_calls(const Partition &partition) {
    std::vector<int> calls(partition.kernels.size(), 0);
    for (const KernelCall &call : partition.calls) {
        ++calls[static_cast<std::size_t>(call.kernel)];
    }
    return calls;
}

bool PartitionTuner::tune(const Partition &partition, const std::vector<KernelSchedule> &schedules, double until, double hopeless) {
    std::vector<Work> works = collect(partition, schedules);
    done_ = 0;
    to_do_ = static_cast<int>(works.size());
    measure_defaults(works, until);
    const std::vector<double> known = costs(partition);
    const double by_default = std::accumulate(works.begin(), works.end(), std::accumulate(known.begin(), known.end(), 0.0),
                                              [](double sum, const Work &work) { return sum + work.weight(); });
    if (by_default > hopeless) {
        return false;
    }
    search_all(works, until);
    return true;
}

const Outcome *PartitionTuner::outcome(const Kernel &kernel) const {
    const auto found = outcomes_.find(run_.key_of(kernel));
    return found == outcomes_.end() ? nullptr : &found->second;
}

std::vector<double> PartitionTuner::costs(const Partition &partition) const {
    const std::vector<int> calls = count_calls(partition);
    std::vector<double> seconds(partition.kernels.size(), 0);
    for (std::size_t k = 0; k < seconds.size(); ++k) {
        if (const Outcome *known = outcome(partition.kernels[k])) {
            seconds[k] = calls[k] * known->seconds();
        }
    }
    return seconds;
}

double PartitionTuner::total(const Partition &partition) const {
    const std::vector<bool> at_load = kernels_at_load(run_.compilation.program, partition);
    const std::vector<double> seconds = costs(partition);
    double sum = 0;
    for (std::size_t k = 0; k < seconds.size(); ++k) {
        if (!at_load[k] && seconds[k] <= 0) {
            return 0;
        }
        sum += at_load[k] ? 0 : seconds[k];
    }
    return sum;
}

double PartitionTuner::least_total(const Partition &partition) const {
    const std::vector<bool> at_load = kernels_at_load(run_.compilation.program, partition);
    const std::vector<int> calls = count_calls(partition);
    const std::vector<double> known = costs(partition);
    double sum = 0;
    for (std::size_t k = 0; k < known.size(); ++k) {
        const GpuFacts *gpu = run_.compilation.target.gpu;
        const double least =
            known[k] > 0 || !gpu ? known[k] : calls[k] * roofline(partition.kernels[k].algorithm, run_.symbols, *gpu).seconds;
        sum += at_load[k] ? 0 : least;
    }
    return sum;
}

bool PartitionTuner::any_failed() const {
    return std::any_of(outcomes_.begin(), outcomes_.end(), [](const auto &known) { return !known.second.measurement.is_good(); });
}

int PartitionTuner::measured() const {
    int sum = measured_at_other_sizes_;
    for (const auto &[key, outcome] : outcomes_) {
        sum += outcome.candidates;
    }
    return sum;
}

std::vector<PartitionTuner::Work> PartitionTuner::collect(const Partition &partition, const std::vector<KernelSchedule> &schedules) {
    const std::vector<bool> at_load = kernels_at_load(run_.compilation.program, partition);
    const std::vector<int> calls = count_calls(partition);
    const std::vector<FixedInputs> fixed = fixed_of(partition);
    std::vector<Work> works;
    for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
        const Kernel &kernel = partition.kernels[k];
        std::string key = run_.key_of(kernel);
        if (at_load[k] || !is_tunable(schedules[k]) || outcomes_.contains(key)) {
            continue;
        }
        const Directives &start = schedules[k].variants[0].directives;
        if (std::optional<Outcome> outcome = known(key, start)) {
            outcomes_[key] = std::move(*outcome);
        } else if (run_.only_records) {
            outcomes_[key] = {start, {}, start, 0, 0, true};
        } else if (!run_.why_untimed.empty()) {
            outcomes_[key] = {start, {}, start, 0, 0, false};
        } else {
            const auto same = std::find_if(works.begin(), works.end(), [&](const Work &other) { return other.key == key; });
            if (same != works.end()) {
                same->calls += calls[k];
                continue;
            }
            works.push_back({&kernel,
                             calls[k],
                             key,
                             start,
                             0,
                             {},
                             std::make_unique<KernelRunner>(run_.runners, kernel, fixed[k], start,
                                                            sources_of(partition, static_cast<int>(k), fixed[k], run_.symbols))});
        }
    }
    return works;
}

/// An earlier search with at least this budget.
std::optional<Outcome> PartitionTuner::known(const std::string &key, const Directives &start) {
    const std::optional<FinishedSearch> search = run_.records.find_search(search_key(key, start));
    if (!search || (!run_.only_records && search->budget < run_.budget())) {
        return std::nullopt;
    }
    return Outcome{parse_directives(search->directives, "tuning records"), search->measurement, start, search->default_seconds, 0, true};
}

/// Weights are packed for the CPU alone.
std::vector<FixedInputs> PartitionTuner::fixed_of(const Partition &partition) const {
    const bool packs = run_.compilation.target.kind == TargetKind::cpu;
    return packs ? fixed_inputs(run_.compilation.program, partition) : std::vector<FixedInputs>(partition.kernels.size());
}

/// Of the inputs that are not fixed. Values that the user gave have the sizes that are tuned for.
std::vector<std::string> PartitionTuner::sources_of(const Partition &partition, int kernel, const FixedInputs &fixed,
                                                    const SymbolValues &sizes) const {
    const auto call = std::find_if(partition.calls.begin(), partition.calls.end(), [&](const KernelCall &c) { return c.kernel == kernel; });
    internal_assert(call != partition.calls.end(), "kernel {} of the partition is never called", kernel);
    const Kernel &called = partition.kernels[static_cast<std::size_t>(kernel)];
    const bool have_values = !run_.options.inputs.empty() && sizes == run_.symbols;
    std::vector<std::string> sources;
    std::size_t input = 0;
    for (std::string &source : value_sources(run_.compilation.program, called, *call, sizes, have_values)) {
        if (input >= fixed.size() || !fixed[input]) {
            sources.push_back(std::move(source));
        }
        ++input;
    }
    return sources;
}

/// The defaults' times share out the budget. They are compiled several at once.
void PartitionTuner::measure_defaults(std::vector<Work> &works, double until) {
    std::vector<Work *> waiting;
    for (Work &work : works) {
        // One that failed is tried again: that may have been the machine's fault, and without it nothing of the kernel can be searched.
        const std::optional<Measurement> known = run_.records.find(work.key, print(work.start));
        if (known && known->is_good()) {
            work.default_measurement = *known;
            work.default_seconds = known->seconds;
        } else {
            waiting.push_back(&work);
        }
    }
    const int to_search = std::exchange(to_do_, static_cast<int>(waiting.size()));
    const auto chunk = static_cast<std::size_t>(run_.jobs);
    for (std::size_t begin = 0; begin < waiting.size() && !run_.stop && run_.elapsed() < until; begin += chunk) {
        const std::size_t end = std::min(waiting.size(), begin + chunk);
        std::vector<KernelRunner *> runners;
        for (std::size_t i = begin; i < end; ++i) {
            runners.push_back(waiting[i]->runner.get());
        }
        std::vector<std::future<Candidate>> builds = build_references(runners);
        std::vector<Candidate> built;  // all, before the first is timed: what runs on this processor is timed alone
        for (std::future<Candidate> &build : builds) {
            built.push_back(build.get());
        }
        for (std::size_t i = begin; i < end && !run_.stop; ++i) {
            tell("default of " + waiting[i]->kernel->name, {});
            time_default(*waiting[i], built[i - begin]);
            ++done_;
        }
    }
    done_ = 0;
    to_do_ = to_search;
}

void PartitionTuner::time_default(Work &work, Candidate candidate) {
    require_kept(candidate);
    if (candidate.measurement.is_good()) {
        try {
            candidate.measurement.seconds = work.runner->time_reference();
            work.default_seconds = candidate.measurement.seconds;
        } catch (const std::exception &error) {
            candidate.measurement.failure = error.what();
        }
    }
    work.default_measurement = candidate.measurement;
    ++measured_[work.key];
    run_.records.store(work.key, print(work.start), candidate.measurement);
}

/// Each kernel gets the share of the time that its calls have of the model's; what one leaves, the next ones share.
void PartitionTuner::search_all(std::vector<Work> &works, double until) {
    std::stable_sort(works.begin(), works.end(), [](const Work &a, const Work &b) { return a.weight() > b.weight(); });
    double weights = 0;
    for (const Work &work : works) {
        weights += work.weight();
    }
    for (Work &work : works) {
        const double left = until - run_.elapsed();
        const double share = work.weight() > 0 ? left * work.weight() / weights : 0;
        weights -= work.weight();
        if (run_.stop) {
            outcomes_[work.key] = {work.start, work.default_measurement, work.start, work.default_seconds, measured_[work.key], false};
        } else if (share <= 0 || !work.default_measurement.is_good()) {
            finish(work, {work.start, work.default_measurement, work.default_seconds, 0, 0, true});
        } else {
            search(work, run_.elapsed() + share);
        }
        work.runner.reset();
        ++done_;
    }
}

void PartitionTuner::search(Work &work, double until) {
    finish(work, search_kernel_at(*work.kernel, work.start, *work.runner, work.key, run_.symbols, until));
}

SearchResult PartitionTuner::search_kernel_at(const Kernel &kernel, const Directives &start, KernelRunner &runner, const std::string &key,
                                              const SymbolValues &sizes, double until) {
    const Target &target = run_.compilation.target;
    SearchSpace space(kernel, target, run_.options);
    SearchLimits limits;
    limits.deadline = run_.at(until);
    limits.idle_expansions = run_.options.budget > 0 ? 0 : idle_without_budget;  // who gave a time wants it used
    limits.stop = &run_.stop;
    limits.at_once = run_.jobs;
    limits.build_ahead = target.kind == TargetKind::cuda;
    limits.neighbours = [&](const Directives &directives) { return space.around(directives); };
    limits.suggestions = [&](const Candidate &candidate) {
        return space.suggestions(candidate.directives, candidate.measurement.resources);
    };
    if (target.gpu) {
        limits.floor_seconds = roofline(kernel.algorithm, sizes, *target.gpu).seconds;
    }
    return search_kernel(space.first(start), runner, run_.records, key, limits,
                         [&](const SearchCounts &counts) { tell(kernel.name, counts); });
}

std::optional<Outcome> PartitionTuner::search_at(std::size_t kernel, const Directives &start, const SymbolValues &sizes, double until) {
    const Partition &partition = run_.compilation.partition;
    const Kernel &searched = partition.kernels[kernel];
    const std::string key = run_.key_of(searched, sizes);
    if (std::optional<Outcome> outcome = known(key, start)) {
        return outcome;
    }
    if (!run_.may_measure() || run_.elapsed() >= until) {
        return std::nullopt;
    }
    const FixedInputs fixed = fixed_of(partition)[kernel];
    const RunnerContext context{run_.compilation.target, sizes, "", run_.child, run_.folder, run_.builders, run_.compilers.get()};
    KernelRunner runner(context, searched, fixed, start, sources_of(partition, static_cast<int>(kernel), fixed, sizes));
    const SearchResult result = search_kernel_at(searched, start, runner, key, sizes, until);
    measured_at_other_sizes_ += result.measured;
    store(key, start, result);
    return Outcome{result.directives, result.measurement, start, result.default_seconds, result.measured, false};
}

void PartitionTuner::finish(const Work &work, const SearchResult &result) {
    if (!result.measurement.is_good()) {
        spdlog::warn("kernel {} keeps its default schedule: {}", work.kernel->name, result.measurement.failure);
    }
    outcomes_[work.key] = {
        result.directives, result.measurement, work.start, result.default_seconds, measured_[work.key] + result.measured, false};
    store(work.key, work.start, result);
}

void PartitionTuner::store(const std::string &key, const Directives &start, const SearchResult &result) {
    if (result.finished && result.measurement.is_good()) {
        run_.records.store_search(search_key(key, start),
                                  {run_.budget(), print(result.directives), result.measurement, result.default_seconds, result.candidates});
    }
}

void PartitionTuner::tell(const std::string &kernel, const SearchCounts &search) const {
    if (run_.tell) {
        run_.tell({kernel, done_, to_do_, search, run_.elapsed()});
    }
}

}  // namespace tilewright
