#include "autotune/search.h"

#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <set>
#include <spdlog/spdlog.h>

#include "autotune/estimator.h"
#include "autotune/space.h"

namespace tilewright {
namespace {

constexpr int spills_worth_timing = 64;    ///< bytes a thread more than the default schedule's
constexpr double finalist_range = 1.15;    ///< times this close to the best are decided by running in turn
constexpr std::size_t most_finalists = 4;
constexpr int least_rounds = 5, most_rounds = 15;
constexpr double finalist_seconds = 0.5;   ///< for all of them, where they are few enough for least_rounds
constexpr int runs_of_round = 15;

class KernelSearch {
public:
    KernelSearch(CandidateRunner &runner, Records &records, const std::string &key, const SearchLimits &limits, const SearchProgress &progress)
        : runner_(runner), records_(records), key_(key), limits_(limits), progress_(progress) {}

    SearchResult run(std::vector<Directives> first) {
        enqueue({first.begin(), first.begin() + 1});
        measure_some(1);  // before the others, whose reference it is
        if (!measured_[0].measurement.is_good()) {
            return {measured_[0].directives, measured_[0].measurement, 0, 1, fresh_, !stopped()};
        }
        enqueue({first.begin() + 1, first.end()});
        std::set<std::string> expanded;
        for (int expansions = 0; may_go_on();) {
            if (!queue_.empty() || ahead_.valid()) {
                measure_some(static_cast<std::size_t>(std::max(1, limits_.at_once)));
                continue;
            }
            const Candidate *next = best_unexpanded(expanded);
            if (!next || expansions++ == limits_.expansions) {
                break;
            }
            expanded.insert(print(next->directives));
            enqueue(neighbours(next->directives));
        }
        return choose();
    }

private:
    bool stopped() const { return limits_.stop && limits_.stop->load(); }
    bool may_go_on() const { return !stopped() && std::chrono::steady_clock::now() < limits_.deadline; }

    void enqueue(std::vector<Directives> candidates) {
        for (Directives &candidate : candidates) {
            if (seen_.insert(print(candidate)).second) {
                queue_.push_back(std::move(candidate));
            }
        }
    }

    /// Takes up to `count` candidates out of the queue that have to be built; those known from records cost nothing.
    std::vector<Directives> take_unknown(std::size_t count) {
        std::vector<Directives> unknown;
        while (!queue_.empty() && unknown.size() < count) {
            Directives directives = std::move(queue_.front());
            queue_.pop_front();
            if (const std::optional<Measurement> known = records_.find(key_, print(directives))) {
                measured_.push_back({std::move(directives), *known, ""});
            } else {
                unknown.push_back(std::move(directives));
            }
        }
        return unknown;
    }

    /// `count` candidates are compiled together, then timed one by one. Where that is allowed, the next ones are compiled meanwhile.
    void measure_some(std::size_t count) {
        std::vector<Candidate> built;
        if (ahead_.valid()) {
            built = ahead_.get();
        } else if (std::vector<Directives> unknown = take_unknown(count); !unknown.empty()) {
            built = runner_.build(std::move(unknown));
        }
        if (limits_.build_ahead && !measured_.empty() && may_go_on()) {
            if (std::vector<Directives> next = take_unknown(count); !next.empty()) {
                ahead_ = std::async(std::launch::async, [this, next = std::move(next)]() mutable { return runner_.build(std::move(next)); });
            }
        }
        for (Candidate &candidate : built) {
            if (!measured_.empty() && !may_go_on()) {
                return;  // what was not timed is not recorded
            }
            measure(candidate);
            measured_.push_back(std::move(candidate));
            report();
        }
    }

    void measure(Candidate &candidate) {
        Measurement &measurement = candidate.measurement;
        if (measurement.is_good() && !measured_.empty() && measurement.spill_bytes > measured_[0].measurement.spill_bytes + spills_worth_timing) {
            measurement.failure = fmt::format("spills {} bytes a thread; not timed", measurement.spill_bytes);
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
        std::stable_sort(good.begin(), good.end(), [](const Candidate *a, const Candidate *b) { return a->measurement.seconds < b->measurement.seconds; });
        return good;
    }

    /// Of the best two, one whose neighbours are not known yet.
    const Candidate *best_unexpanded(const std::set<std::string> &expanded) const {
        const std::vector<const Candidate *> good = by_time();
        for (std::size_t i = 0; i < std::min<std::size_t>(2, good.size()); ++i) {
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
        SearchResult result{measured_[0].directives, measured_[0].measurement, measured_[0].measurement.seconds, static_cast<int>(measured_.size()),
                            fresh_, !stopped()};
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

    /// In turn; where one of them fails now, each for itself beside the default, which every round of a runner has in it. No times for one that
    /// fails again.
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
        std::vector<Directives> missing;
        std::vector<Candidate *> places;
        for (Candidate &finalist : finalists) {
            if (finalist.plan.empty()) {
                missing.push_back(finalist.directives);
                places.push_back(&finalist);
            }
        }
        if (missing.empty()) {
            return true;
        }
        std::vector<Candidate> built = runner_.build(std::move(missing));
        for (std::size_t i = 0; i < built.size(); ++i) {
            if (built[i].plan.empty()) {
                return false;
            }
            places[i]->plan = built[i].plan;
        }
        return true;
    }

    void report() const {
        if (progress_) {
            const std::vector<const Candidate *> good = by_time();
            progress_(static_cast<int>(measured_.size()), good.empty() ? 0 : good[0]->measurement.seconds);
        }
    }

    CandidateRunner &runner_;
    Records &records_;
    const std::string &key_;
    const SearchLimits &limits_;
    const SearchProgress &progress_;
    std::deque<Directives> queue_;
    std::set<std::string> seen_;
    std::vector<Candidate> measured_;  ///< the default first
    int fresh_ = 0;                    ///< of those, not known from records
    std::future<std::vector<Candidate>> ahead_;  ///< being built
};

}  // namespace

SearchResult search_kernel(std::vector<Directives> first, CandidateRunner &runner, Records &records, const std::string &key, const SearchLimits &limits,
                           const SearchProgress &progress) {
    return KernelSearch(runner, records, key, limits, progress).run(std::move(first));
}

}  // namespace tilewright
