// The search of one kernel's schedule: measures candidates, goes on from the best, and keeps what is really the fastest.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "autotune/search/records.h"
#include "autotune/search/space.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

/// A schedule that is, or cannot be, ready to run.
struct Candidate {
    Directives directives;
    Measurement measurement;    ///< resources and failure; the time once it was measured
    std::string plan;           ///< path of its plan; empty where it was not built
    std::string not_kept = {};  ///< why its plan could not be written: the machine's fault, not the candidate's
};

/// UserError where the candidate's plan could not be written: nothing can be measured then, and nothing is to be recorded.
void require_kept(const Candidate &candidate);

/// Builds and times candidates of one kernel.
class CandidateRunner {
public:
    virtual ~CandidateRunner() = default;
    /// Begins to compile one, beside others and beside time(). One that does not compile comes back with its failure.
    virtual std::future<Candidate> build(Directives directives) = 0;
    /// What has not begun to compile need not; the futures become ready all the same.
    virtual void give_up_builds() {}
    /// Times built candidates in turn, after their outputs were found right: seconds of each, by round. Throws where one fails, with the
    /// reason.
    virtual std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) = 0;
};

struct SearchLimits {
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    const std::atomic<bool> *stop = nullptr;  ///< set when the user wants the best so far
    int at_once = 1;                          ///< candidates compiled together
    bool build_ahead = false;                 ///< compile while others are timed: where candidates do not run on this processor
    double floor_seconds = 0;                 ///< what no schedule can beat: the search ends there
    /// What lies one step away from a schedule.
    std::function<std::vector<Directives>(const Directives &)> neighbours = [](const Directives &d) { return tilewright::neighbours(d); };
    /// What a candidate's resources suggest to try beside it, before everything that waits.
    std::function<std::vector<Directives>(const Candidate &)> suggestions = [](const Candidate &) { return std::vector<Directives>(); };
    int expansions = 64;      ///< schedules whose neighbours are measured, at most
    int idle_expansions = 0;  ///< so many in a row that found nothing faster end the search; 0: they do not
};

struct SearchResult {
    Directives directives;
    Measurement measurement;  ///< of the chosen one; without a time where nothing could be measured
    double default_seconds = 0;
    int candidates = 0;    ///< measured, those known from records among them
    int measured = 0;      ///< the others
    bool finished = true;  ///< false where the user stopped it
};

/// How far a search is.
struct SearchCounts {
    int built = 0;            ///< candidates tried, those known from records among them
    int pruned = 0;           ///< of those: did not compile, spill too much, or are wrong
    double best_seconds = 0;  ///< 0 while nothing was timed

    int timed() const { return built - pruned; }
};
using SearchProgress = std::function<void(const SearchCounts &)>;

/// `first` holds at least one candidate; its first is the default, whose outputs are the reference. Everything measured goes to the records
/// under `key` and is not measured again.
SearchResult search_kernel(std::vector<Directives> first, CandidateRunner &runner, Records &records, const std::string &key,
                           const SearchLimits &limits, const SearchProgress &progress = {});

}  // namespace tilewright
