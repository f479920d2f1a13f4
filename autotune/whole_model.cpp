#include "autotune/whole_model.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <spdlog/spdlog.h>
#include <sstream>

#include "autotune/measure/child_answer.h"
#include "autotune/measure/estimator.h"
#include "autotune/measure/model_timer.h"
#include "dsl/error.h"
#include "lowering/schedule_file.h"

namespace tilewright {
namespace {

constexpr int rounds_of_model = 7;
constexpr double longest_request = 600;      ///< seconds; loading large models takes a while
constexpr std::size_t kernels_reverted = 4;  ///< the costliest whose default is tried again
constexpr const char *all_by_default = "default";

/// Kernels and schedules that the model may end up with.
struct Settlement {
    Partition groups;
    std::vector<KernelSchedule> schedules;
};

class Settling {
public:
    Settling(TuningRun &run, const PartitionTuner &tuner, const Settlement &by_default)
        : run_(run), tuner_(tuner), default_(by_default), tuned_{run.compilation.partition, run.compilation.schedules} {
        for (std::size_t k = 0; k < tuned_.groups.kernels.size(); ++k) {
            if (const Outcome *outcome = tuner_.outcome(tuned_.groups.kernels[k]); outcome && is_tuned(k)) {
                tuned_.schedules[k].variants[0].directives = outcome->directives;
            }
        }
    }

    ModelTimes run() {
        ModelTimes times;
        std::string reverted;
        const std::string key = "whole " + run_.model_key;
        if (run_.only_records) {
            if (const std::optional<FinishedSearch> known = run_.records.find_search(key)) {
                reverted = known->directives;
                times = {known->default_seconds, known->measurement.seconds};
            }
        } else if (run_.may_measure() && std::max(tuned_.groups.calls.size(), default_.groups.calls.size()) > 1 && differs()) {
            reverted = decide(times);
            if (!run_.stop) {
                run_.records.store_search(key, {run_.budget(), reverted, {times.tuned_seconds, "", {}}, times.default_seconds, 0});
            }
        }
        Settlement result = with_reverted(reverted);
        run_.compilation.partition = std::move(result.groups);
        run_.compilation.schedules = std::move(result.schedules);
        return times;
    }

private:
    bool is_tuned(std::size_t k) const { return tuned_.schedules[k].variants.size() == 1; }
    bool differs() const {
        const auto same = [](const KernelSchedule &a, const KernelSchedule &b) { return print(a) == print(b); };
        return !std::equal(tuned_.schedules.begin(), tuned_.schedules.end(), default_.schedules.begin(), default_.schedules.end(), same) ||
               partition_hash(tuned_.groups) != partition_hash(default_.groups);
    }

    /// "default", or the hashes of the kernels that keep their default schedule.
    Settlement with_reverted(const std::string &reverted) const {
        if (reverted == all_by_default) {
            return default_;
        }
        Settlement result = tuned_;
        std::istringstream hashes(reverted);
        std::set<std::string> names;
        for (std::string hash; hashes >> hash;) {
            names.insert(hash);
        }
        for (std::size_t k = 0; k < result.schedules.size(); ++k) {
            const Kernel &kernel = result.groups.kernels[k];
            if (const Outcome *outcome = tuner_.outcome(kernel); outcome && names.contains(kernel.hash.to_string())) {
                result.schedules[k].variants[0].directives = outcome->default_directives;
            }
        }
        return result;
    }

    /// Which kernels go back to their default schedules.
    std::string decide(ModelTimes &times) {
        try {
            std::vector<std::vector<double>> rounds = time({all_by_default, ""});
            times = {median(rounds[0]), median(rounds[1])};
            if (choose_fastest(rounds) == 1) {
                return "";
            }
            std::vector<std::string> choices{all_by_default, ""};
            for (const std::string &hash : costliest()) {
                choices.push_back(hash);
            }
            rounds = time(choices);
            std::string slow;
            for (std::size_t c = 2; c < choices.size(); ++c) {
                if (choose_fastest(std::vector<std::vector<double>>{rounds[1], rounds[c]}) == 1) {
                    slow += choices[c] + " ";
                }
            }
            choices = {all_by_default, "", slow};
            rounds = time(choices);
            const auto best = static_cast<std::size_t>(choose_fastest(rounds));
            times = {median(rounds[0]), median(rounds[best])};
            spdlog::debug("whole model: {:.1f} us by default, {:.1f} us tuned; reverted: {}", times.default_seconds * 1e6,
                          median(rounds[1]) * 1e6, choices[best]);
            return choices[best];
        } catch (const std::exception &error) {  // what was measured of the kernels stands
            spdlog::debug("the whole model could not be timed: {}", error.what());
            return "";
        }
    }

    std::vector<std::string> costliest() const {
        const std::vector<double> seconds = tuner_.costs(tuned_.groups);
        std::vector<std::size_t> order(seconds.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
        std::vector<std::string> hashes;
        for (const std::size_t k : order) {
            const Outcome *outcome = tuner_.outcome(tuned_.groups.kernels[k]);
            if (outcome && outcome->directives != outcome->default_directives && hashes.size() < kernels_reverted) {
                hashes.push_back(tuned_.groups.kernels[k].hash.to_string());
            }
        }
        return hashes;
    }

    std::vector<std::vector<double>> time(const std::vector<std::string> &choices) {
        ModelTimingRequest request{rounds_of_model, run_.archive, run_.options, {}};
        request.options.sizes = {run_.symbols.begin(), run_.symbols.end()};
        for (const std::string &choice : choices) {
            Settlement settlement = with_reverted(choice);
            std::swap(run_.compilation.partition, settlement.groups);
            std::swap(run_.compilation.schedules, settlement.schedules);
            request.schedules.push_back(run_.folder.next());
            write_schedule(schedule_file_of(run_.compilation), request.schedules.back());
            std::swap(run_.compilation.partition, settlement.groups);
            std::swap(run_.compilation.schedules, settlement.schedules);
        }
        return parse_child_answer(run_.child.ask(to_line(request), longest_request), choices.size());
    }

    TuningRun &run_;
    const PartitionTuner &tuner_;
    const Settlement default_;
    Settlement tuned_;
};

}  // namespace

ModelTimes settle_model(TuningRun &run, const PartitionTuner &tuner, const Partition &groups,
                        const std::vector<KernelSchedule> &schedules) {
    return Settling(run, tuner, {groups, schedules}).run();
}

}  // namespace tilewright
