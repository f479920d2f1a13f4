// A schedule file and its model: names do not matter, a change is told with kernel and cause, an edit shows in the emitted code.
#include <doctest/doctest.h>

#include <algorithm>

#include "dsl/atomic_file.h"
#include "tests/support/command.h"

using namespace tilewright;
using tilewright::test::run_tilewright;

namespace {

const std::string folder = "tests/data/changed_models/";

/// What a stage of a model is printed as.
std::string printed(const std::string &model, const std::string &target, const std::string &stage, const std::string &schedule = "") {
    std::vector<std::string> words{"print", folder + model + ".pt2", "--target", target, "--stage", stage};
    if (!schedule.empty()) {
        words.insert(words.end(), {"--schedule", schedule});
    }
    const test::CommandResult result = run_tilewright(words);
    CHECK_MESSAGE(result.status == 0, result.errors);
    return result.output;
}

/// From the first entry on: what stands above names the file of the model.
std::string entries(const std::string &schedule) { return schedule.substr(schedule.find("\nkernel ")); }

std::string written(const std::string &name, const std::string &text) {
    const std::string path = test::scratch_folder("changed_model") + "/" + name;
    write_file_atomically(path, text);
    return path;
}

}  // namespace

TEST_CASE("other names for layers leave the entries alone") {
    for (const char *target : {"cpu", "cuda"}) {
        const std::string schedule = printed("original", target, "schedule");
        CHECK(entries(schedule) == entries(printed("renamed", target, "schedule")));
        const std::string path = written("renamed.schedule", schedule);
        const test::CommandResult check = run_tilewright({"check", path, folder + "renamed.pt2"});
        CHECK_MESSAGE(check.status == 0, check.output, check.errors);
    }
}

TEST_CASE("a changed layer makes its entries stale, and check names them") {
    const std::string path = written("changed.schedule", printed("original", "cpu", "schedule"));
    const test::CommandResult check = run_tilewright({"check", path, folder + "changed.pt2"});
    CHECK(check.status == 1);
    CHECK_MESSAGE(
        check.output.find("kernel linear_relu is stale: its place dot#0 is now computed by kernel linear_sigmoid") != std::string::npos,
        check.output);
    CHECK_MESSAGE(check.output.find("kernel layer_norm_softmax is stale") == std::string::npos, check.output);
    const test::CommandResult run =
        run_tilewright({"run", folder + "changed.pt2", "--target", "cpu", "--schedule", path, "--inputs", path});
    CHECK(run.status == 2);
    CHECK_MESSAGE(run.errors.find("stale") != std::string::npos, run.errors);
    CHECK_MESSAGE(std::count(run.errors.begin(), run.errors.end(), '\n') == 1, run.errors);
}

TEST_CASE("a second entry for a kernel is stale, for check as for run") {
    const std::string schedule = printed("original", "cpu", "schedule");
    std::string again = entries(schedule);
    again.insert(again.find("kernel ") + 7, "copied_");
    const std::string path = written("twice.schedule", schedule + again.substr(0, again.find("\nend\n") + 5));
    const test::CommandResult check = run_tilewright({"check", path, folder + "original.pt2"});
    CHECK(check.status == 1);
    CHECK_MESSAGE(check.output.find("has this algorithm and an entry of its own") != std::string::npos, check.output, check.errors);
    const test::CommandResult print =
        run_tilewright({"print", folder + "original.pt2", "--target", "cpu", "--stage", "schedule", "--schedule", path});
    CHECK(print.status == 2);
}

TEST_CASE("check notices lines of an entry, and the graph's hash, that do not say what is so") {
    const std::string schedule = printed("original", "cpu", "schedule");
    const auto check = [&](const std::string &from, const std::string &to) {
        std::string text = schedule;
        text.replace(text.find(from), from.size(), to);
        const test::CommandResult result = run_tilewright({"check", written("words.schedule", text), folder + "original.pt2"});
        CHECK(result.status == 1);
        return result.output;
    };
    CHECK(check("\n  fuses ", "\n  fuses softmax ").find(": the line 'fuses' does not fit the model; it should read: fuses ") !=
          std::string::npos);
    CHECK(check("\n  covers ", "\n  covers dot#7 ").find(": the line 'covers' does not fit the model; it should read: covers ") !=
          std::string::npos);
    CHECK(check(" graph ", " graph 0").find("words.schedule:2: the file is for graph 0") != std::string::npos);
}

TEST_CASE("a stage that no directive places runs on one thread, and check says so") {
    std::string schedule = printed("original", "cuda", "schedule");
    const std::size_t at = schedule.find("maximum.compute_with(");
    REQUIRE_MESSAGE(at != std::string::npos, schedule);
    const std::size_t line = schedule.rfind('\n', at);
    schedule.erase(line, schedule.find('\n', at) - line);
    const test::CommandResult check = run_tilewright({"check", written("lone.schedule", schedule), folder + "original.pt2"});
    CHECK_MESSAGE(check.status == 0, check.output, check.errors);
    CHECK_MESSAGE(
        check.output.find("has one thread a block; give its stage gpu_blocks and gpu_threads, or compute_at a loop of its reader") !=
            std::string::npos,
        check.output);
}

TEST_CASE("a directive edited by hand shows in the emitted code") {
    const std::string schedule = printed("original", "cuda", "schedule");
    const std::string code = printed("original", "cuda", "cuda", written("unedited.schedule", schedule));
    CHECK(code == printed("original", "cuda", "cuda"));
    std::string edited = schedule;
    const std::size_t at = edited.rfind(".unroll(");
    REQUIRE_MESSAGE(at != std::string::npos, schedule);
    edited.erase(at, edited.find(')', at) + 1 - at);
    const std::string changed = printed("original", "cuda", "cuda", written("edited.schedule", edited));
    CHECK(changed != code);
}
