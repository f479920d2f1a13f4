// Candidates that crash, hang or compute something else are recorded, and the search goes on.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "autotune/measure/measuring_child.h"
#include "autotune/search/search.h"
#include "dsl/error.h"
#include "tests/support/command.h"

using namespace tilewright;

namespace {

std::string failure_of(MeasuringChild &child, const std::string &request, double seconds) {
    try {
        return "answered " + child.ask(request, seconds);
    } catch (const ChildFailure &failure) {
        return failure.what();
    }
}

/// A child that echoes its requests, but for the words at which it fails.
std::vector<std::string> shell_child() {
    return {"/bin/sh", "-c",
            "while read line; do case $line in crash) kill -SEGV $$;; leave) exit 7;; hang) sleep 60;; *) echo $line;; esac; done"};
}

/// Candidates are told apart by the factor of their split: one is the fastest, others fail in their ways.
class FaultyRunner final : public CandidateRunner {
public:
    std::future<Candidate> build(Directives directives) override {
        Candidate candidate{std::move(directives), {}, "plan"};
        if (factor(candidate) == 32) {
            candidate.measurement.failure = "does not compile";
            candidate.plan.clear();
        }
        candidate.measurement.resources.spill_bytes = factor(candidate) == 1 ? 4000 : 0;
        std::promise<Candidate> built;
        built.set_value(std::move(candidate));
        return built.get_future();
    }
    std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) override {
        std::vector<std::vector<double>> seconds;
        for (const Candidate &candidate : candidates) {
            ++timed[factor(candidate)];
            if (factor(candidate) == 16) {
                throw ChildFailure("ended by signal 11");
            }
            seconds.emplace_back(rounds, factor(candidate) == 2 ? 5e-6 : 10e-6);
        }
        return seconds;
    }
    static std::int64_t factor(const Candidate &candidate) { return std::get<std::int64_t>(candidate.directives[0].arguments[3]); }
    std::map<std::int64_t, int> timed;
};

Directives split_by(std::int64_t factor) { return parse_directives("sum.split(d0, o, i, " + std::to_string(factor) + ")", "test"); }

}  // namespace

TEST_CASE("a child that ends or hangs is replaced") {
    MeasuringChild child(shell_child());
    CHECK(child.ask("first", 10) == "first");
    CHECK(failure_of(child, "crash", 10).starts_with("ended by signal 11"));
    CHECK(child.ask("second", 10) == "second");
    CHECK(failure_of(child, "leave", 10) == "ended with status 7");
    CHECK(failure_of(child, "hang", 0.2).starts_with("took longer than"));
    CHECK_FALSE(child.is_running());
    CHECK(child.ask("third", 10) == "third");
    MeasuringChild none({"/nonexistent/program"});
    CHECK(failure_of(none, "x", 10) == "ended with status 127");
}

TEST_CASE("a search past failures, its records, and the same search again") {
    const std::string folder = test::scratch_folder("tuning_faults");
    Records records(folder + "/records.sqlite");
    FaultyRunner runner;
    SearchCounts counts;
    const SearchResult result = search_kernel({split_by(8)}, runner, records, "kernel", {}, [&](const SearchCounts &now) {
        CHECK(now.built == counts.built + 1);
        counts = now;
    });
    CHECK(counts.built == result.candidates);
    CHECK(counts.pruned == 2);  // one fails as it runs, one spills
    CHECK(counts.best_seconds == 5e-6);
    CHECK(result.finished);
    CHECK(result.directives == split_by(2));
    CHECK(result.measurement.seconds == 5e-6);
    CHECK(result.default_seconds == 10e-6);
    const auto failure = [&](std::int64_t factor) {
        return records.find("kernel", print(split_by(factor))).value_or(Measurement{}).failure;
    };
    CHECK(failure(16) == "ended by signal 11");
    CHECK(failure(1).starts_with("spills 4000 bytes"));
    CHECK(runner.timed[1] == 0);
    CHECK(failure(2) == "");

    FaultyRunner again;
    CHECK(search_kernel({split_by(8)}, again, records, "kernel", {}).directives == split_by(2));
    CHECK(again.timed[16] == 0);
    CHECK(again.timed[4] == 0);
    CHECK(again.timed[2] == 1);  // with the default, in turn, for the choice
}

TEST_CASE("a user who stops the search gets the best so far") {
    const std::string folder = test::scratch_folder("tuning_stopped");
    Records records(folder + "/records.sqlite");
    FaultyRunner runner;
    const std::atomic<bool> stop = true;
    const SearchResult result = search_kernel({split_by(8)}, runner, records, "kernel", {.stop = &stop});
    CHECK_FALSE(result.finished);
    CHECK(result.directives == split_by(8));
}

TEST_CASE("a search that may end where it gains nothing more does") {
    const std::string folder = test::scratch_folder("tuning_idle");
    Records records(folder + "/records.sqlite");
    FaultyRunner runner;
    SearchLimits limits;
    limits.neighbours = [](const Directives &from) {  // one more each time, none faster
        return std::vector<Directives>{split_by(std::get<std::int64_t>(from[0].arguments[3]) + 100)};
    };
    limits.idle_expansions = 3;
    CHECK(search_kernel({split_by(8)}, runner, records, "kernel", limits).candidates == 5);
    limits.idle_expansions = 0;
    CHECK(search_kernel({split_by(8)}, runner, records, "kernel", limits).candidates == 11);  // neighbours of the ten best
}

TEST_CASE("a plan that cannot be written is no fault of its candidate, and nothing is recorded of it") {
    class FullDisk final : public CandidateRunner {
        std::future<Candidate> build(Directives directives) override {
            std::promise<Candidate> built;
            built.set_value({std::move(directives), {0, "no space", {}}, "", "cannot write 0.plan: no space"});
            return built.get_future();
        }
        std::vector<std::vector<double>> time(std::span<const Candidate>, int) override { throw ChildFailure("nothing to time"); }
    };
    const std::string folder = test::scratch_folder("tuning_full_disk");
    Records records(folder + "/records.sqlite");
    FullDisk runner;
    CHECK_THROWS_WITH_AS(search_kernel({split_by(8)}, runner, records, "kernel", {}),
                         "the search cannot go on: cannot write 0.plan: no space, or set TMPDIR to another folder", UserError);
    CHECK_FALSE(records.find("kernel", print(split_by(8))));
}

TEST_CASE("records: what is stored is found, in another process's view too") {
    const std::string path = test::scratch_folder("tuning_records") + "/deep/records.sqlite";
    Records one(path), other(path);
    one.store("k", "d", {1e-6, "", {40, 0, 1024, 50}});
    CHECK(other.find("k", "d")->resources.registers == 40);
    CHECK_FALSE(other.find("k", "e"));
    other.store_search("k", {30, "text", {2e-6, "", {1, 2, 3, 4}}, 4e-6, 5});
    CHECK(one.find_search("k")->budget == 30);
    CHECK(one.find_search("k")->measurement.resources.shared_bytes == 3);
    CHECK_THROWS_AS(Records("/proc/none/records.sqlite"), UserError);
}

TEST_CASE("what the best candidate's resources suggest is tried first") {
    const std::string folder = test::scratch_folder("tuning_suggestions");
    Records records(folder + "/records.sqlite");
    FaultyRunner runner;
    SearchLimits limits;
    limits.neighbours = [](const Directives &) { return std::vector<Directives>(); };
    limits.suggestions = [](const Candidate &candidate) {
        return FaultyRunner::factor(candidate) == 8 ? std::vector<Directives>{split_by(64), split_by(2)}
                                                    : std::vector<Directives>{split_by(128)};
    };
    std::vector<std::int64_t> order;
    search_kernel({split_by(8), split_by(4), split_by(2)}, runner, records, "kernel", limits, [&](const SearchCounts &) {
        for (const auto &[factor, times] : runner.timed) {
            if (std::find(order.begin(), order.end(), factor) == order.end()) {
                order.push_back(factor);
            }
        }
    });
    CHECK(order == std::vector<std::int64_t>{8, 64, 2, 128, 4});
}
