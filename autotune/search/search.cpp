#include "autotune/search/search.h"

#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <set>
#include <spdlog/spdlog.h>

#include "autotune/measure/estimator.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

constexpr int spills_worth_timing = 384;   ///< bytes a thread more than the default schedule's
constexpr double finalist_range = 1.15;    ///< times this close to the best are decided by running in turn
constexpr double worth_going_on = 0.98;    ///< of the best time so far: a gain for which more is tried
constexpr std::size_t most_expanded = 10;  ///< places from the best on whose neighbours are tried
constexpr std::size_t most_finalists = 6;
constexpr int least_rounds = 5, most_rounds = 15;
constexpr double finalist_seconds = 0.5;  ///< for all of them, where they are few enough for least_rounds
constexpr int runs_of_round = 15;
constexpr std::chrono::milliseconds patience{5};  ///< between looks at the time

class KernelSearch {
public:
    KernelSearch(CandidateRunner &runner, Records &records, const std::string &key, const SearchLimits &limits,
                 const SearchProgress &progress)
        : runner_(runner), records_(records), key_(key), limits_(limits), progress_(progress) {}

    SearchResult run(std::vector<Directives> first) {
        enqueue({first.begin(), first.begin() + 1});
        begin_builds();
        if (!builds_.empty()) {
            measure_next();  // before the others, whose reference it is
        }
        if (!measured_[0].measurement.is_good()) {
            return {measured_[0].directives, measured_[0].measurement, 0, 1, fresh_, !stopped()};
        }
        enqueue({first.begin() + 1, first.end()});
        follow_suggestions();  // the default may be known from records
        std::set<std::string> expanded;
        for (int expansions = 0; may_go_on();) {
            begin_builds();
            if (queue_.empty() && builds_.size() <= static_cast<std::size_t>(limits_.at_once) / 2) {
                const Candidate *next = expansions < limits_.expansions && still_gains() ? best_unexpanded(expanded) : nullptr;
                if (next) {
                    ++expansions;
                    expanded.insert(print(next->directives));
                    enqueue(limits_.neighbours(next->directives));
                    continue;
                }
                if (builds_.empty()) {
                    break;
                }
            }
            if (!builds_.empty()) {
                measure_next();
            }
        }
        give_up_builds();
        return choose();
    }

private:
    bool stopped() const { return limits_.stop && limits_.stop->load(); }
    bool may_go_on() const { return !stopped() && std::chrono::steady_clock::now() < limits_.deadline && !at_floor(); }
    bool at_floor() const {
        const std::vector<const Candidate *> good = by_time();
        return !good.empty() && good[0]->measurement.seconds <= limits_.floor_seconds;
    }

    /// Asked before each expansion.
    bool still_gains() {
        const std::vector<const Candidate *> good = by_time();
        const double best = good.empty() ? 0 : good[0]->measurement.seconds;
        if (gained_ == 0 || best < worth_going_on * gained_) {
            gained_ = best;
            idle_ = 0;
        } else {
            ++idle_;
        }
        return limits_.idle_expansions == 0 || idle_ <= limits_.idle_expansions;
    }

    void enqueue(std::vector<Directives> candidates) {
        for (Directives &candidate : candidates) {
            if (seen_.insert(print(candidate)).second) {
                queue_.push_back(std::move(candidate));
            }
        }
    }

    /// Those of the best candidate go before what waits.
    void follow_suggestions() {
        const std::vector<const Candidate *> good = by_time();
        if (good.empty() || !suggested_.insert(print(good[0]->directives)).second) {
            return;
        }
        std::vector<Directives> suggestions = limits_.suggestions(*good[0]);
        for (auto next = suggestions.rbegin(); next != suggestions.rend(); ++next) {
            const auto waits = std::find(queue_.begin(), queue_.end(), *next);
            if (waits != queue_.end()) {
                queue_.erase(waits);
            } else if (!seen_.insert(print(*next)).second) {
                continue;
            }
            queue_.push_front(std::move(*next));
        }
    }

    /// Begins builds until enough are under way; candidates known from records cost nothing.
    void begin_builds() {
        if (!limits_.build_ahead && !builds_.empty()) {
            return;
        }
        const std::size_t most = static_cast<std::size_t>(std::max(1, limits_.at_once)) * (limits_.build_ahead ? 2 : 1);
        while (!queue_.empty() && builds_.size() < most) {
            Directives directives = std::move(queue_.front());
            queue_.pop_front();
            if (const std::optional<Measurement> known = records_.find(key_, print(directives))) {
                measured_.push_back({std::move(directives), *known, ""});
            } else {
                builds_.push_back(runner_.build(std::move(directives)));
            }
        }
    }

    /// Times a candidate that is built. Where candidates run on this processor, nothing is compiled meanwhile.
    void measure_next() {
        for (std::size_t i = 0; !limits_.build_ahead && i < builds_.size(); ++i) {
            builds_[i].wait();
        }
        const auto is_ready = [](const std::future<Candidate> &build) {
            return build.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        };
        auto next = std::find_if(builds_.begin(), builds_.end(), is_ready);
        while (next == builds_.end()) {
            if (!measured_.empty() && !may_go_on()) {
                return;
            }
            builds_.front().wait_for(patience);
            next = std::find_if(builds_.begin(), builds_.end(), is_ready);
        }
        Candidate candidate = next->get();
        builds_.erase(next);
        measure(candidate);
        measured_.push_back(std::move(candidate));
        report();
        follow_suggestions();
    }

    void give_up_builds() {
        runner_.give_up_builds();
        for (const std::future<Candidate> &build : builds_) {
            build.wait();
        }
        builds_.clear();
    }

    void measure(Candidate &candidate) {
        if (!candidate.not_kept.empty()) {
            give_up_builds();
            require_kept(candidate);
        }
        Measurement &measurement = candidate.measurement;
        if (const int spills = measurement.resources.spill_bytes;
            measurement.is_good() && !measured_.empty() && spills > measured_[0].measurement.resources.spill_bytes + spills_worth_timing) {
            measurement.failure = fmt::format("spills {} bytes a thread; not timed", spills);
        }
        if (measurement.is_good()) {
            try {
                measurement.seconds = median(runner_.time(std::span(&candidate, 1), 1).at(0));
            } catch (const std::exception &error) {
                measurement.failure = error.what();
            }
        }
        if (!measurement.is_good()) {
            spdlog::debug("candidate refused: {}", measurement.failure);
        }
        records_.store(key_, print(candidate.directives), measurement);
        ++fresh_;
    }

    std::vector<const Candidate *> by_time() const {
        std::vector<const Candidate *> good;
        for (const Candidate &candidate : measured_) {
            if (candidate.measurement.is_good()) {
                good.push_back(&candidate);
            }
        }
        std::stable_sort(good.begin(), good.end(),
                         [](const Candidate *a, const Candidate *b) { return a->measurement.seconds < b->measurement.seconds; });
        return good;
    }

    /// Of the best few, one whose neighbours are not known yet.
    const Candidate *best_unexpanded(const std::set<std::string> &expanded) const {
        const std::vector<const Candidate *> good = by_time();
        for (std::size_t i = 0; i < std::min(most_expanded, good.size()); ++i) {
            if (!expanded.contains(print(good[i]->directives))) {
                return good[i];
            }
        }
        return nullptr;
    }

    SearchResult choose() {
        const std::vector<const Candidate *> good = by_time();
        std::vector<Candidate> finalists{measured_[0]};
        for (const Candidate *candidate : good) {
            const bool close = candidate->measurement.seconds <= good[0]->measurement.seconds * finalist_range;
            if (candidate != &measured_[0] && close && finalists.size() < most_finalists) {
                finalists.push_back(*candidate);
            }
        }
        SearchResult result{measured_[0].directives,
                            measured_[0].measurement,
                            measured_[0].measurement.seconds,
                            static_cast<int>(measured_.size()),
                            fresh_,
                            !stopped()};
        if (finalists.size() == 1) {
            return result;
        }
        // The user is waiting: the times measured so far decide, where they are clear.
        int best = good[0]->measurement.seconds < 0.97 * measured_[0].measurement.seconds && good[0] != &measured_[0] ? 1 : 0;
        if (!stopped() && build_missing(finalists)) {
            const std::vector<std::vector<double>> rounds = time_finalists(finalists);
            best = choose_fastest(rounds);
            for (std::size_t f = 0; f < finalists.size(); ++f) {
                finalists[f].measurement.seconds = rounds[f].empty() ? finalists[f].measurement.seconds : median(rounds[f]);
            }
            result.default_seconds = finalists[0].measurement.seconds;
        }
        result.directives = finalists[static_cast<std::size_t>(best)].directives;
        result.measurement = finalists[static_cast<std::size_t>(best)].measurement;
        return result;
    }

    /// In turn; where one of them fails now, each for itself beside the default, which every round of a runner has in it. No times for one
    /// that fails again.
    std::vector<std::vector<double>> time_finalists(std::span<const Candidate> finalists) {
        const double once = finalists[0].measurement.seconds * runs_of_round * static_cast<double>(finalists.size());
        const int rounds = static_cast<int>(std::clamp(finalist_seconds / std::max(once, 1e-9), double{least_rounds}, double{most_rounds}));
        try {
            return runner_.time(finalists, rounds);
        } catch (const std::exception &error) {
            spdlog::debug("finalists could not be timed in turn: {}", error.what());
        }
        std::vector<std::vector<double>> seconds(finalists.size());
        for (std::size_t f = 0; f < finalists.size(); ++f) {
            try {
                seconds[f] = runner_.time(finalists.subspan(f, 1), rounds).at(0);
            } catch (const std::exception &error) {
                spdlog::debug("finalist refused: {}", error.what());
            }
        }
        return seconds;
    }

    /// Candidates known from records have no plan yet.
    bool build_missing(std::vector<Candidate> &finalists) {
        std::vector<std::pair<Candidate *, std::future<Candidate>>> missing;
        for (Candidate &finalist : finalists) {
            if (finalist.plan.empty()) {
                missing.emplace_back(&finalist, runner_.build(finalist.directives));
            }
        }
        bool all = true;
        for (auto &[finalist, build] : missing) {
            finalist->plan = build.get().plan;
            all = all && !finalist->plan.empty();
        }
        return all;
    }

    void report() const {
        if (progress_) {
            const std::vector<const Candidate *> good = by_time();
            const int built = static_cast<int>(measured_.size());
            progress_({built, built - static_cast<int>(good.size()), good.empty() ? 0 : good[0]->measurement.seconds});
        }
    }

    CandidateRunner &runner_;
    Records &records_;
    const std::string &key_;
    const SearchLimits &limits_;
    const SearchProgress &progress_;
    std::deque<Directives> queue_;
    std::set<std::string> seen_;
    std::set<std::string> suggested_;            ///< candidates whose suggestions were followed
    std::vector<Candidate> measured_;            ///< the default first
    int fresh_ = 0;                              ///< of those, not known from records
    double gained_ = 0;                          ///< best time when an expansion last paid
    int idle_ = 0;                               ///< expansions since then
    std::deque<std::future<Candidate>> builds_;  ///< under way
};

}  // namespace

void require_kept(const Candidate &candidate) {
    if (!candidate.not_kept.empty()) {
        user_error("the search cannot go on: {}, or set TMPDIR to another folder", candidate.not_kept);
    }
}

SearchResult search_kernel(std::vector<Directives> first, CandidateRunner &runner, Records &records, const std::string &key,
                           const SearchLimits &limits, const SearchProgress &progress) {
    return KernelSearch(runner, records, key, limits, progress).run(std::move(first));
}

}  // namespace tilewright
