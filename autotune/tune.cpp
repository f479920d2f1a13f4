#include "autotune/tune.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <spdlog/spdlog.h>
#include <thread>

#include "autotune/kernel_runner.h"
#include "autotune/kernels_at_load.h"
#include "autotune/search.h"
#include "autotune/space.h"
#include "autotune/tuning_sizes.h"
#include "autotune/value_sources.h"
#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "lowering/fixed_inputs.h"
#include "lowering/fusion/fusion.h"
#include "lowering/pipeline.h"
#include "lowering/schedule_file.h"
#include "runtime/digest.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr double kept_for_groups = 0.7;           ///< of the budget; the rest is for kernels taken apart
constexpr std::size_t kernels_taken_apart = 4;    ///< the costliest
constexpr std::size_t cuts_of_kernel = 2;
constexpr double worth_regrouping = 0.97;         ///< of the whole's time

/// What is known of a kernel.
struct Outcome {
    Directives directives;
    Measurement measurement;
    double default_seconds = 0;
    int candidates = 0;
    bool from_records = false;

    double seconds() const { return measurement.is_good() && measurement.seconds > 0 ? measurement.seconds : default_seconds; }
};

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

std::vector<int> count_calls(const Partition &partition) {
    std::vector<int> calls(partition.kernels.size(), 0);
    for (const KernelCall &call : partition.calls) {
        ++calls[static_cast<std::size_t>(call.kernel)];
    }
    return calls;
}

/// An entry with variants is somebody's choice for several sizes, and stays.
bool is_tunable(const KernelSchedule &schedule) { return schedule.variants.size() == 1 && schedule.variants[0].conditions.empty(); }

class ModelTuner {
public:
    ModelTuner(const std::string &archive, const Options &options, const std::vector<std::string> &child, const std::atomic<bool> &stop,
               const TellProgress &tell)
        : options_(options), stop_(stop), tell_(tell), compilation_(compile_archive(archive, options, PipelineStep::schedule)),
          symbols_(tuning_sizes(compilation_.program, options)), records_(options.records.empty() ? Records::standard_path() : options.records),
          child_(child), jobs_(options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
          context_{compilation_.target, symbols_, options.inputs, jobs_, child_, folder_} {}

    TuneReport run() {
        const std::string model = model_key();
        const std::optional<FinishedSearch> earlier = records_.find_search(model);
        only_records_ = earlier && earlier->budget >= budget();
        const bool regroups = options_.fusion == "search" && options_.schedule.empty();
        tune_partition(compilation_.partition, compilation_.schedules, regroups ? kept_for_groups * budget() : budget());
        if (regroups) {
            regroup();
        }
        if (!stop_ && !only_records_) {
            records_.store_search(model, {budget(), "", {}, 0, 0});
        }
        return report();
    }

private:
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
    double budget() const { return options_.budget > 0 ? options_.budget : no_limit; }
    /// The moment when the run is `seconds` old.
    Clock::time_point at(double seconds) const {
        return seconds >= 1e9 ? Clock::time_point::max() : started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    /// What times depend on beside kernel and schedule.
    std::string machine() const {
        const Target &target = compilation_.target;
        return fmt::format("{} {} {} {} engines={}{}{}", target.to_string(), target.gpu ? target.gpu->name : target.device,
                           std::thread::hardware_concurrency(), build_id(), options_.engines, options_.strict ? " strict" : "",
                           options_.deterministic ? " deterministic" : "");
    }

    std::string key_of(const Kernel &kernel) const {
        std::string key = kernel.hash.to_string() + " " + to_string(extent_signature(kernel.algorithm));
        for (const auto &[symbol, range] : kernel.algorithm.symbols) {
            key += fmt::format(" {}={}", symbol, symbols_.at(symbol));
        }
        return key + " " + machine();
    }

    static std::string text_hash(const std::string &text) { return Digest().add(text).hex().substr(0, 16); }
    /// A search also depends on where it starts.
    static std::string search_key(const std::string &key, const Directives &start) { return key + " from " + text_hash(print(start)); }

    std::string model_key() const {
        std::string kernels;
        for (std::size_t k = 0; k < compilation_.schedules.size(); ++k) {
            kernels += key_of(compilation_.partition.kernels[k]) + print(compilation_.schedules[k]);
        }
        return fmt::format("model {} fusion={} {}", text_hash(kernels), options_.fusion, machine());
    }

    // ---- One partition ------------------------------------------------------------------------------------------------------------

    /// Afterwards every kernel that can be tuned has an outcome. `until`: seconds of the run.
    void tune_partition(const Partition &partition, const std::vector<KernelSchedule> &schedules, double until) {
        std::vector<Work> works = collect(partition, schedules);
        done_ = 0;
        to_do_ = static_cast<int>(works.size());
        measure_defaults(works, until);
        search_all(works, until);
    }

    std::vector<Work> collect(const Partition &partition, const std::vector<KernelSchedule> &schedules) {
        const std::vector<bool> at_load = kernels_at_load(compilation_.program, partition);
        const std::vector<int> calls = count_calls(partition);
        const bool packs = compilation_.target.kind == TargetKind::cpu;
        const std::vector<FixedInputs> fixed = packs ? fixed_inputs(compilation_.program, partition) : std::vector<FixedInputs>(partition.kernels.size());
        std::vector<Work> works;
        for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
            const Kernel &kernel = partition.kernels[k];
            std::string key = key_of(kernel);
            if (at_load[k] || !is_tunable(schedules[k]) || outcomes_.contains(key)) {
                continue;
            }
            const Directives &start = schedules[k].variants[0].directives;
            const std::optional<FinishedSearch> search = records_.find_search(search_key(key, start));
            if (search && (only_records_ || search->budget >= budget())) {
                outcomes_[key] = {parse_directives(search->directives, "tuning records"), search->measurement, search->default_seconds, 0, true};
            } else if (only_records_) {
                outcomes_[key] = {start, {}, 0, 0, true};
            } else {
                auto runner = std::make_unique<KernelRunner>(context_, kernel, fixed[k], start, sources_of(partition, static_cast<int>(k), fixed[k]));
                Work work{&kernel, calls[k], key, start, 0, {}, std::move(runner)};
                const auto same = std::find_if(works.begin(), works.end(), [&](const Work &other) { return other.key == key; });
                if (same == works.end()) {
                    works.push_back(std::move(work));
                } else {
                    same->calls += work.calls;
                }
            }
        }
        return works;
    }

    /// Of the inputs that are not fixed.
    std::vector<std::string> sources_of(const Partition &partition, int kernel, const FixedInputs &fixed) const {
        const auto call = std::find_if(partition.calls.begin(), partition.calls.end(), [&](const KernelCall &c) { return c.kernel == kernel; });
        internal_assert(call != partition.calls.end(), "kernel {} of the partition is never called", kernel);
        const Kernel &called = partition.kernels[static_cast<std::size_t>(kernel)];
        std::vector<std::string> sources;
        std::size_t input = 0;
        for (std::string &source : value_sources(compilation_.program, called, *call, symbols_, !options_.inputs.empty())) {
            if (input >= fixed.size() || !fixed[input]) {
                sources.push_back(std::move(source));
            }
            ++input;
        }
        return sources;
    }

    /// The defaults' times share out the budget. They are compiled several at once.
    void measure_defaults(std::vector<Work> &works, double until) {
        std::vector<Work *> waiting;
        for (Work &work : works) {
            if (const std::optional<Measurement> known = records_.find(work.key, print(work.start))) {
                work.default_measurement = *known;
                work.default_seconds = known->is_good() ? known->seconds : 0;
            } else {
                waiting.push_back(&work);
            }
        }
        const auto chunk = static_cast<std::size_t>(jobs_);
        for (std::size_t begin = 0; begin < waiting.size() && !stop_ && elapsed() < until; begin += chunk) {
            const std::size_t end = std::min(waiting.size(), begin + chunk);
            std::vector<KernelRunner *> runners;
            for (std::size_t i = begin; i < end; ++i) {
                runners.push_back(waiting[i]->runner.get());
            }
            const std::vector<Candidate> built = build_references(runners, jobs_);
            for (std::size_t i = begin; i < end && !stop_; ++i) {
                tell("default of " + waiting[i]->kernel->name, 0, 0);
                time_default(*waiting[i], built[i - begin]);
            }
        }
    }

    void time_default(Work &work, Candidate candidate) {
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
        records_.store(work.key, print(work.start), candidate.measurement);
    }

    /// Each kernel gets the share of the time that its calls have of the model's; what one leaves, the next ones share.
    void search_all(std::vector<Work> &works, double until) {
        std::stable_sort(works.begin(), works.end(), [](const Work &a, const Work &b) { return a.weight() > b.weight(); });
        double weights = 0;
        for (const Work &work : works) {
            weights += work.weight();
        }
        for (Work &work : works) {
            const double left = until - elapsed();
            const double share = work.weight() > 0 ? left * work.weight() / weights : 0;
            weights -= work.weight();
            if (stop_) {
                outcomes_[work.key] = {work.start, work.default_measurement, work.default_seconds, 0, false};
            } else if (share <= 0 || !work.default_measurement.is_good()) {
                finish(work, {work.start, work.default_measurement, work.default_seconds, 0, 0, true});
            } else {
                search(work, elapsed() + share);
            }
            work.runner.reset();
            ++done_;
        }
    }

    void search(Work &work, double until) {
        const SearchLimits limits{at(until), &stop_, jobs_, compilation_.target.kind == TargetKind::cuda};
        const SearchResult result =
            search_kernel(first_candidates(*work.kernel, work.start, compilation_.target, options_), *work.runner, records_, work.key, limits,
                          [&](int candidates, double best) { tell(work.kernel->name, candidates, best); });
        finish(work, result);
    }

    void finish(const Work &work, const SearchResult &result) {
        if (!result.measurement.is_good()) {
            spdlog::warn("kernel {} keeps its default schedule: {}", work.kernel->name, result.measurement.failure);
        }
        outcomes_[work.key] = {result.directives, result.measurement, result.default_seconds, measured_[work.key] + result.measured, false};
        if (result.finished) {
            records_.store_search(search_key(work.key, work.start),
                                  {budget(), print(result.directives), result.measurement, result.default_seconds, result.candidates});
        }
    }

    // ---- Groups and their parts -----------------------------------------------------------------------------------------------------

    /// Seconds of all calls of each kernel; 0 where it is not known.
    std::vector<double> costs(const Partition &partition) const {
        const std::vector<int> calls = count_calls(partition);
        std::vector<double> seconds(partition.kernels.size(), 0);
        for (std::size_t k = 0; k < seconds.size(); ++k) {
            if (const auto found = outcomes_.find(key_of(partition.kernels[k])); found != outcomes_.end()) {
                seconds[k] = calls[k] * found->second.seconds();
            }
        }
        return seconds;
    }

    /// Of all calls but those at load; 0 where one is not known.
    double total(const Partition &partition) const {
        const std::vector<bool> at_load = kernels_at_load(compilation_.program, partition);
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

    /// Other groups are candidates too: joins that do not always pay, and the costliest kernels in parts.
    void regroup() {
        double best = total(compilation_.partition);
        FusionOptions fusion = fusion_options(options_, compilation_.target);
        for (bool FusionOptions::*join : {&FusionOptions::streaming, &FusionOptions::gating, &FusionOptions::mixed}) {
            FusionOptions trial = fusion;
            trial.*join = true;
            try_groups(trial, fusion, best);
        }
        for (const auto &[hash, cuts] : trials()) {
            for (const std::vector<std::string> &cut : cuts) {
                FusionOptions trial = fusion;
                trial.cuts[hash] = cut;
                if (try_groups(trial, fusion, best)) {
                    break;
                }
            }
        }
    }

    /// Tunes what the trial's groups need beside what is known, and takes them where the whole is faster.
    bool try_groups(const FusionOptions &trial, FusionOptions &chosen, double &best) {
        if (best <= 0 || stop_ || (!only_records_ && elapsed() >= budget())) {
            return false;
        }
        Partition groups;
        std::vector<KernelSchedule> schedules;
        try {
            groups = partition(compilation_.translated.algorithm, trial);
            schedules = choose_schedules(groups, nullptr, compilation_.target, fixed_inputs(compilation_.program, groups));
        } catch (const std::exception &error) {  // what was found so far stands
            spdlog::debug("groups that cannot be made: {}", error.what());
            return false;
        }
        if (partition_hash(groups) == partition_hash(compilation_.partition)) {
            return false;
        }
        tune_partition(groups, schedules, elapsed() + (budget() - elapsed()) / 2);
        const double seconds = total(groups);
        if (stop_ || seconds <= 0 || seconds >= worth_regrouping * best) {
            return false;
        }
        spdlog::debug("other groups: {:.1f} us for {:.1f} us", seconds * 1e6, best * 1e6);
        best = seconds;
        chosen = trial;
        compilation_.partition = std::move(groups);
        compilation_.schedules = std::move(schedules);
        return true;
    }

    std::vector<std::pair<Hash, std::vector<std::vector<std::string>>>> trials() const {
        const Partition &partition = compilation_.partition;
        const std::vector<double> seconds = costs(partition);
        std::vector<std::size_t> order(seconds.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
        order.resize(std::min<std::size_t>(order.size(), kernels_taken_apart));
        std::vector<std::pair<Hash, std::vector<std::vector<std::string>>>> result;
        for (const std::size_t k : order) {
            std::vector<std::vector<std::string>> cuts = cuts_worth_trying(partition.kernels[k]);
            cuts.resize(std::min<std::size_t>(cuts.size(), cuts_of_kernel));
            result.emplace_back(partition.kernels[k].hash, std::move(cuts));
        }
        return result;
    }

    // ---- The result -----------------------------------------------------------------------------------------------------------------

    TuneReport report() {
        const Partition &partition = compilation_.partition;
        const std::vector<bool> at_load = kernels_at_load(compilation_.program, partition);
        const std::vector<int> calls = count_calls(partition);
        TuneReport result;
        std::vector<std::vector<std::string>> all_notes(partition.kernels.size());
        for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
            TunedKernel tuned;
            tuned.name = partition.kernels[k].name;
            tuned.calls = calls[k];
            tuned.at_load = at_load[k];
            if (const auto found = outcomes_.find(key_of(partition.kernels[k])); found != outcomes_.end() && !at_load[k]) {
                const Outcome &outcome = found->second;
                tuned.default_seconds = outcome.default_seconds;
                tuned.measurement = outcome.measurement;
                tuned.candidates = outcome.candidates;
                tuned.from_records = outcome.from_records;
                compilation_.schedules[k].variants[0].directives = outcome.directives;
                all_notes[k] = notes(partition.kernels[k], outcome);
            }
            result.kernels.push_back(std::move(tuned));
        }
        result.file = schedule_file_of(compilation_);
        for (std::size_t k = 0; k < all_notes.size(); ++k) {
            result.file.kernels[k].notes = std::move(all_notes[k]);
        }
        for (const auto &[key, outcome] : outcomes_) {
            result.measured += outcome.candidates;
        }
        result.seconds = elapsed();
        result.stopped = stop_;
        return result;
    }

    std::vector<std::string> notes(const Kernel &kernel, const Outcome &outcome) const {
        const Measurement &measurement = outcome.measurement;
        if (!measurement.is_good() || measurement.seconds <= 0) {
            return {};
        }
        std::string note;
        for (const auto &[symbol, range] : kernel.algorithm.symbols) {
            note += fmt::format("{}={} ", symbol, symbols_.at(symbol));
        }
        note += fmt::format("{:.2f} us, default {:.2f} us", measurement.seconds * 1e6, outcome.default_seconds * 1e6);
        if (compilation_.target.kind == TargetKind::cuda) {
            note += fmt::format(", {} registers, {} bytes spilled, {} bytes shared", measurement.registers, measurement.spill_bytes,
                                measurement.shared_bytes);
        }
        return {note};
    }

    void tell(const std::string &kernel, int candidates, double best) const {
        if (tell_) {
            tell_({kernel, done_, to_do_, candidates, best, elapsed()});
        }
    }

    const Clock::time_point started_ = Clock::now();
    const Options &options_;
    const std::atomic<bool> &stop_;
    const TellProgress &tell_;
    Compilation compilation_;
    SymbolValues symbols_;
    Records records_;
    MeasuringChild child_;
    PlanFolder folder_;
    int jobs_;
    RunnerContext context_;
    bool only_records_ = false;                ///< the same search was made before: nothing is measured
    std::map<std::string, Outcome> outcomes_;  ///< by key_of()
    std::map<std::string, int> measured_;      ///< defaults, by key_of()
    int done_ = 0, to_do_ = 0;                 ///< kernels of the partition that is tuned
};

}  // namespace

TuneReport tune_archive(const std::string &archive, const Options &options, const std::vector<std::string> &child, const std::atomic<bool> &stop,
                        const TellProgress &tell) {
    if (options.records.empty() && Records::standard_path().empty()) {
        user_error("there is no cache folder for tuning records; set XDG_CACHE_HOME or HOME, or name a file with --records");
    }
    return ModelTuner(archive, options, child, stop, tell).run();
}

std::string schedule_path(const std::string &archive, const Options &options) {
    if (!options.out.empty()) {
        return options.out;
    }
    const Target target = choose_target(options);
    std::string machine = "cpu";
    if (target.gpu) {
        machine = target.gpu->name.substr(target.gpu->name.rfind(' ') + 1);
        std::transform(machine.begin(), machine.end(), machine.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return std::filesystem::path(archive).replace_extension("." + machine + ".schedule").string();
}

}  // namespace tilewright
