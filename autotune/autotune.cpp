#include "autotune/autotune.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "autotune/kernel_search.h"
#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "lowering/fusion/fusion.h"
#include "lowering/schedule_file.h"
#include "runtime/digest.h"
#include "runtime/plan_cache.h"

namespace tilewright {
namespace {

constexpr int kernels_taken_apart = 4;  ///< the costliest, each in at most two ways
constexpr double worth_climbing = 0.01; ///< share of all kernels' time below which a kernel's first candidates must do
constexpr double worth_cutting = 0.97;  ///< of the whole's time

std::string records_path(const Options &options) {
    if (!options.records.empty()) {
        return options.records;
    }
    const std::string folder = PlanCache::standard().folder();
    if (folder.empty()) {
        user_error("there is no place for tuning records; set XDG_CACHE_HOME or HOME, or name a file with --records");
    }
    return folder + "/records.sqlite";
}

/// Sizes to measure at: those asked for, and for the other symbols what draw_inputs() would take.
std::map<std::string, std::int64_t> sizes_for(const SymbolRanges &symbols, const std::map<std::string, std::int64_t> &wanted) {
    std::map<std::string, std::int64_t> sizes;
    for (const auto &[symbol, range] : symbols) {
        const auto found = wanted.find(symbol);
        const std::int64_t middle = range.min + (std::min<std::int64_t>(range.max, 1024) - range.min) / 2;
        sizes[symbol] = found != wanted.end() ? found->second : std::clamp(middle, range.min, range.max);
    }
    for (const auto &[symbol, value] : wanted) {
        if (!symbols.contains(symbol)) {
            user_error("--sizes {}={}: the model has no symbol of this name", symbol, value);
        }
    }
    return sizes;
}

class Tuner {
public:
    Tuner(const std::string &archive, const Options &options, const TuningCallbacks &callbacks)
        : options_(options), callbacks_(callbacks), compilation_(compile_archive(archive, without_file(options), PipelineStep::partition)),
          records_(records_path(options)),
          context_{compilation_.target, options_, records_, {}, false, [this] { return out_of_time(); },
                   [this](int built, int failed, int timed, double best) { on_progress(built, failed, timed, best); }, 0} {
        report_.path = schedule_path(archive, options);
        report_.target = compilation_.target.to_string();
        context_.measure.sizes = sizes_for(compilation_.program.symbols, options.sizes);
        context_.measure.folder = std::filesystem::temp_directory_path().string();
    }

    TuningReport run() {
        const std::string search = search_key();
        context_.only_records = records_.finished(search, options_.budget);
        double total = tune_partition(compilation_.partition, true);
        if (options_.fusion == "search") {
            take_apart(total);
        }
        write_file();
        report_.interrupted = callbacks_.stop && *callbacks_.stop;
        if (!context_.only_records && !report_.interrupted) {
            records_.mark_finished(search, options_.budget);
        }
        report_.measured = context_.measured;
        return std::move(report_);
    }

private:
    static Options without_file(Options options) {
        options.schedule.clear();
        return options;
    }

    bool out_of_time() const { return (callbacks_.stop && *callbacks_.stop) || (options_.budget > 0 && elapsed() >= options_.budget); }
    double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

    std::string search_key() const {
        Digest digest;
        digest.add(build_id()).add(compilation_.target.to_string()).add(compilation_.target.device).add(options_.fusion).add(options_.engines);
        for (const Kernel &kernel : compilation_.partition.kernels) {
            digest.add(kernel_key(kernel));
        }
        for (const auto &[symbol, value] : context_.measure.sizes) {
            digest.add(symbol).add(std::to_string(value));
        }
        return digest.hex();
    }

    void on_progress(int built, int failed, int timed, double best) {
        if (callbacks_.progress) {
            progress_.built += built;
            progress_.failed += failed;
            progress_.timed += timed;
            progress_.best_seconds = best;
            progress_.elapsed = elapsed();
            callbacks_.progress(progress_);
        }
    }

    /// Tunes the kernels that are new, first all a little, then the costliest thoroughly: a budget that ends early was spent where it counts.
    /// Returns the seconds of all calls, 0 where a kernel has no time.
    double tune_partition(const Partition &partition, bool write_each) {
        progress_.kernels = static_cast<int>(partition.kernels.size());
        for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
            if (!tuned_.contains(kernel_key(partition.kernels[k]))) {
                tune(partition.kernels[k], static_cast<int>(k) + 1, false);
            }
        }
        const std::map<std::size_t, double> cost = costs(partition);
        double total = 0;
        std::vector<std::size_t> order;
        for (const auto &[k, seconds] : cost) {
            total += seconds;
            order.push_back(k);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost.at(a) > cost.at(b); });
        for (const std::size_t k : order) {
            const std::string key = kernel_key(partition.kernels[k]);
            if (cost.at(k) >= worth_climbing * total && climbed_.insert(key).second) {
                tune(partition.kernels[k], static_cast<int>(k) + 1, true);
                if (write_each && !context_.only_records) {
                    write_file();
                }
            }
        }
        total = 0;
        for (const auto &[k, seconds] : costs(partition)) {
            if (seconds == 0) {
                return 0;
            }
            total += seconds;
        }
        return total;
    }

    void tune(const Kernel &kernel, int number, bool climb) {
        progress_.kernel = number;
        progress_.name = kernel.name;
        on_progress(0, 0, 0, 0);
        tuned_.insert_or_assign(kernel_key(kernel), search_kernel(kernel, context_, climb));
    }

    /// Seconds of all calls of each kernel.
    std::map<std::size_t, double> costs(const Partition &partition) const {
        std::map<std::size_t, double> cost;
        for (const KernelCall &call : partition.calls) {
            cost[static_cast<std::size_t>(call.kernel)] += tuned_.at(kernel_key(partition.kernels[call.kernel])).outcome.best_seconds;
        }
        return cost;
    }

    /// A group and its parts are both candidates: the costliest kernels are taken apart where the parts are faster.
    void take_apart(double total) {
        FusionOptions fusion = fusion_options(options_);
        const std::map<std::size_t, double> cost = costs(compilation_.partition);
        std::vector<std::size_t> costly;
        for (const auto &[k, seconds] : cost) {
            costly.push_back(k);
        }
        std::stable_sort(costly.begin(), costly.end(), [&](std::size_t a, std::size_t b) { return cost.at(a) > cost.at(b); });
        costly.resize(std::min<std::size_t>(costly.size(), kernels_taken_apart));
        std::vector<std::pair<Hash, std::vector<std::vector<std::string>>>> trials;
        for (const std::size_t k : costly) {
            const Kernel &kernel = compilation_.partition.kernels[k];
            std::vector<std::vector<std::string>> cuts = cuts_worth_trying(kernel);
            cuts.resize(std::min<std::size_t>(cuts.size(), 2));
            trials.emplace_back(kernel.hash, std::move(cuts));
        }
        for (const auto &[hash, cuts] : trials) {
            for (const std::vector<std::string> &cut : cuts) {
                if (total == 0 || (out_of_time() && !context_.only_records)) {
                    return;
                }
                FusionOptions trial = fusion;
                trial.cuts[hash] = cut;
                Partition parts = partition(compilation_.translated.algorithm, trial);
                const double seconds = tune_partition(parts, false);
                if (seconds > 0 && seconds < worth_cutting * total) {
                    total = seconds;
                    fusion = trial;
                    compilation_.partition = std::move(parts);
                }
            }
        }
    }

    void write_file() {
        std::map<std::string, int> calls;
        for (const KernelCall &call : compilation_.partition.calls) {
            ++calls[compilation_.partition.kernels[call.kernel].name];
        }
        compilation_.schedules.clear();
        report_.kernels.clear();
        for (const Kernel &kernel : compilation_.partition.kernels) {
            KernelSchedule entry = default_schedule(kernel, compilation_.target);
            KernelOutcome outcome{kernel.name, 0, 0, 0, 0, 0, "not reached"};
            if (const auto tuned = tuned_.find(kernel_key(kernel)); tuned != tuned_.end()) {
                entry.variants[0].directives = tuned->second.best;
                outcome = tuned->second.outcome;
                if (outcome.best_seconds > 0) {
                    entry.notes.push_back(note_of(kernel, tuned->second));
                }
            }
            outcome.kernel = kernel.name;
            outcome.calls = calls[kernel.name];
            compilation_.schedules.push_back(std::move(entry));
            report_.kernels.push_back(std::move(outcome));
        }
        report_.file = schedule_file_of(compilation_);
        write_schedule(report_.file, report_.path);
    }

    /// What was measured, as a comment in the file.
    std::string note_of(const Kernel &kernel, const KernelResult &result) const {
        std::string text;
        for (const auto &[symbol, value] : context_.measure.sizes) {
            if (kernel.algorithm.symbols.contains(symbol)) {
                text += fmt::format("{}={} ", symbol, value);
            }
        }
        text += fmt::format("{:.2f} us", result.outcome.best_seconds * 1e6);
        if (compilation_.target.kind == TargetKind::cuda) {
            const CompiledKernel compiled = compile_kernel(kernel, result.best, compilation_.target);
            for (const CodeObject &code : compiled.code) {
                text += fmt::format(", {} registers, {} B spilled, {} B shared", code.registers, code.spill_stores, code.shared_bytes);
            }
        }
        return text + fmt::format("; default {:.2f} us", result.outcome.default_seconds * 1e6);
    }

    Options options_;
    TuningCallbacks callbacks_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    Compilation compilation_;
    TuningRecords records_;
    SearchContext context_;
    TuningProgress progress_;
    TuningReport report_;
    std::map<std::string, KernelResult> tuned_;  ///< by kernel_key()
    std::set<std::string> climbed_;              ///< those searched thoroughly
};

}  // namespace

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

TuningReport autotune(const std::string &archive, const Options &options, const TuningCallbacks &callbacks) {
    return Tuner(archive, options, callbacks).run();
}

}  // namespace tilewright
