#include "autotune/regroup.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <spdlog/spdlog.h>

#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "lowering/fixed_inputs.h"
#include "lowering/schedule_file.h"

namespace tilewright {
namespace {

constexpr std::size_t kernels_taken_apart = 4;  ///< the costliest
constexpr std::size_t cuts_of_kernel = 2;
constexpr double worth_regrouping = 0.97;  ///< of the whole's time
constexpr double hopeless_by_default = 2;  ///< times the whole's time: no search is begun

/// A way to group that is not the one that was chosen so far.
struct Trial {
    FusionOptions fusion;
    std::string description;       ///< "in parts after exp"
    std::optional<Hash> replaces;  ///< the kernel that it is about; a join's replaced kernels are found by comparing
};

class Regrouping {
public:
    Regrouping(TuningRun &run, PartitionTuner &tuner)
        : run_(run),
          tuner_(tuner),
          chosen_(fusion_options(run.options, run.compilation.target)),
          best_(tuner.total(run.compilation.partition)) {}

    FusionNotes run() {
        struct Join {
            bool FusionOptions::*option;
            const char *name;
        };
        for (const Join &join :
             {Join{&FusionOptions::streaming, "two products in one pass"}, Join{&FusionOptions::gating, "both products of a gate at once"},
              Join{&FusionOptions::mixed, "column sums beside rows"}, Join{&FusionOptions::rereads, "what was reduced read again"},
              Join{&FusionOptions::finishes_rows, "reductions in the launch of the product whose rows they run along"}}) {
            Trial trial{chosen_, join.name, std::nullopt};
            trial.fusion.*join.option = !(chosen_.*join.option);
            if (chosen_.*join.option) {
                trial.description = fmt::format("not {}", join.name);
            }
            attempt(trial);
        }
        Trial most{fusion_options(run_.options, run_.compilation.target), "everything fused", std::nullopt};
        most.fusion.mode = FusionMode::max;
        if (attempt(most)) {
            return std::move(notes_);  // loading tries that mode, but no cuts of its kernels
        }
        for (const auto &[hash, cuts] : kernels_to_cut()) {
            for (const std::vector<std::string> &cut : cuts) {
                Trial trial{chosen_, fmt::format("in parts after {}", fmt::join(cut, ", ")), hash};
                trial.fusion.cuts[hash] = cut;
                if (attempt(trial)) {
                    break;
                }
            }
        }
        return std::move(notes_);
    }

private:
    bool attempt(const Trial &trial) {
        if (best_ <= 0 || run_.stop || (!run_.only_records && run_.elapsed() >= run_.search_end())) {
            return false;
        }
        Partition groups;
        std::vector<KernelSchedule> schedules;
        try {
            groups = partition(run_.compilation.translated.algorithm, trial.fusion);
            schedules =
                choose_schedules(groups, nullptr, run_.compilation.target, fixed_inputs(run_.compilation.program, groups), run_.options);
        } catch (const std::exception &error) {  // what was found so far stands
            spdlog::debug("groups that cannot be made: {}", error.what());
            return false;
        }
        Partition &current = run_.compilation.partition;
        if (partition_hash(groups) == partition_hash(current)) {
            return false;
        }
        if (tuner_.least_total(groups) >= worth_regrouping * best_) {
            spdlog::debug("{}: cannot be faster", trial.description);
            return false;
        }
        if (!tuner_.tune(groups, schedules, run_.elapsed() + (run_.search_end() - run_.elapsed()) / 2, hopeless_by_default * best_)) {
            spdlog::debug("{}: far slower by default", trial.description);
            return false;
        }
        const double seconds = tuner_.total(groups);
        if (run_.stop || seconds <= 0) {
            return false;
        }
        if (seconds >= worth_regrouping * best_) {
            note(trial, groups, current, seconds - best_);
            return false;
        }
        spdlog::debug("other groups: {:.1f} us for {:.1f} us", seconds * 1e6, best_ * 1e6);
        note(trial, current, groups, best_ - seconds);
        best_ = seconds;
        chosen_ = trial.fusion;
        current = std::move(groups);
        run_.compilation.schedules = std::move(schedules);
        return true;
    }

    static std::set<Hash> hashes_of(const Partition &groups) {
        std::set<Hash> hashes;
        for (const Kernel &kernel : groups.kernels) {
            hashes.insert(kernel.hash);
        }
        return hashes;
    }

    /// What `refused` would have cost more than `kept`, beside each kernel of `kept` that it has not.
    void note(const Trial &trial, const Partition &refused, const Partition &kept, double more) {
        const std::set<Hash> others = hashes_of(refused), own = hashes_of(kept);
        int registers = 0, spills = 0;
        for (const Kernel &kernel : refused.kernels) {
            if (const Outcome *outcome = own.contains(kernel.hash) ? nullptr : tuner_.outcome(kernel)) {
                registers = std::max(registers, outcome->measurement.resources.registers);
                spills = std::max(spills, outcome->measurement.resources.spill_bytes);
            }
        }
        const bool was_refused = &kept == &run_.compilation.partition;
        std::string text = was_refused ? trial.description : trial.replaces ? "not taken apart" : "apart";
        text += fmt::format(": {:.2f} us more a run", more * 1e6);
        if (run_.compilation.target.gpu) {
            text += fmt::format(", {} registers, {} bytes spilled", registers, spills);
        }
        for (const Kernel &kernel : kept.kernels) {
            if (!others.contains(kernel.hash)) {
                notes_[kernel.hash].push_back(text);
            }
        }
    }

    std::vector<std::pair<Hash, std::vector<std::vector<std::string>>>> kernels_to_cut() const {
        const Partition &groups = run_.compilation.partition;
        const std::vector<double> seconds = tuner_.costs(groups);
        std::vector<std::size_t> order(seconds.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
        order.resize(std::min<std::size_t>(order.size(), kernels_taken_apart));
        std::vector<std::pair<Hash, std::vector<std::vector<std::string>>>> result;
        for (const std::size_t k : order) {
            std::vector<std::vector<std::string>> cuts = cuts_worth_trying(groups.kernels[k]);
            cuts.resize(std::min<std::size_t>(cuts.size(), cuts_of_kernel));
            result.emplace_back(groups.kernels[k].hash, std::move(cuts));
        }
        return result;
    }

    TuningRun &run_;
    PartitionTuner &tuner_;
    FusionOptions chosen_;
    double best_;
    FusionNotes notes_;
};

}  // namespace

FusionNotes regroup(TuningRun &run, PartitionTuner &tuner) { return Regrouping(run, tuner).run(); }

}  // namespace tilewright
