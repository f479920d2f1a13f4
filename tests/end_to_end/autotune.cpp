// `autotune` on the CPU: its file runs and fits; tuning again measures nothing and writes the same bytes; a stopped run leaves a whole
// file.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "dsl/atomic_file.h"
#include "dsl/schedule/schedule.h"
#include "tests/support/command.h"

extern char **environ;

using namespace tilewright;
using tilewright::test::CommandResult;
using tilewright::test::run_tilewright;

namespace {

const std::string model = "apps/models/lstm.pt2";
const std::string recorded = "apps/models/lstm.io.safetensors";

std::vector<std::string> tune(const std::string &out, const std::string &records, const std::string &budget) {
    return {"autotune", model, "--target", "cpu", "--out", out, "--records", records, "--budget", budget};
}

/// Starts the command, sends it a signal after `milliseconds`, returns its status.
int run_and_signal(std::vector<std::string> words, int signal, int milliseconds) {
    words.insert(words.begin(), test::build_folder() + "/bin/tilewright");
    std::vector<char *> argv;
    for (std::string &word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    pid_t child = 0;
    REQUIRE(posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a tuned schedule runs, and comes again from the records") {
    const std::string folder = test::scratch_folder("autotune");
    const CommandResult first = run_tilewright(tune(folder + "/a.schedule", folder + "/records.sqlite", "5"));
    REQUIRE_MESSAGE(first.status == 0, first.errors);
    std::string kernels;  // how many defaults are timed
    std::istringstream lines(first.errors);
    int defaults = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t count = line.find(" of ", line.rfind('('));
        if (line.find("default of ") == std::string::npos) {
            continue;
        }
        if (!kernels.empty() && line.substr(count) != kernels) {
            break;  // kernels taken apart come later, in rounds of their own
        }
        kernels = line.substr(count);
        CHECK_MESSAGE(line.find(fmt::format("({} of ", ++defaults)) != std::string::npos, first.errors);
    }
    CHECK_MESSAGE(defaults > 1, first.errors);
    const ScheduleFile file = read_schedule(folder + "/a.schedule");
    CHECK(file.target == "cpu");
    CHECK(file.kernels.size() > 0);
    bool noted = false;
    for (const KernelSchedule &kernel : file.kernels) {
        noted = noted || (!kernel.notes.empty() && kernel.notes[0].find(" us, default ") != std::string::npos);
    }
    CHECK(noted);
    const CommandResult run =
        run_tilewright({"run", model, "--target", "cpu", "--schedule", folder + "/a.schedule", "--inputs", recorded, "--check", recorded});
    CHECK_MESSAGE(run.status == 0, run.output, run.errors);
    const CommandResult check = run_tilewright({"check", folder + "/a.schedule", model});
    CHECK_MESSAGE(check.status == 0, check.output, check.errors);

    const CommandResult second = run_tilewright(tune(folder + "/b.schedule", folder + "/records.sqlite", "5"));
    REQUIRE_MESSAGE(second.status == 0, second.errors);
    CHECK_MESSAGE(second.output.find(" 0 candidates in ") != std::string::npos, second.output);
    CHECK(read_file(folder + "/a.schedule") == read_file(folder + "/b.schedule"));
}

TEST_CASE("stopped at any moment, no file is broken, and the next run goes on") {
    const std::string folder = test::scratch_folder("autotune_stopped");
    const std::string path = folder + "/a.schedule";
    std::mt19937 random(3);
    for (int i = 0; i < 20; ++i) {
        const bool asked = i % 2 == 1;
        const int milliseconds = static_cast<int>(20 + random() % 450) + (i == 11 ? 2000 : 0);
        const int status = run_and_signal(tune(path, folder + "/records.sqlite", "60"), asked ? SIGTERM : SIGKILL, milliseconds);
        if (asked && status != 128 + SIGTERM) {  // a signal before the program listens ends it
            CHECK(status == 0);
            CHECK(std::filesystem::exists(path));
        }
        if (std::filesystem::exists(path)) {
            CHECK_NOTHROW(read_schedule(path));
        }
    }
    const CommandResult last = run_tilewright(tune(path, folder + "/records.sqlite", "1"));
    CHECK_MESSAGE(last.status == 0, last.errors);
    CHECK(run_tilewright({"check", path, model}).status == 0);
}

TEST_CASE("what was asked wrongly is refused in one line") {
    const std::string folder = test::scratch_folder("autotune_refused");
    for (const std::vector<std::string> &words :
         {std::vector<std::string>{"--budget", "-1"}, {"--sizes", "s9=4"}, {"--records", "/proc/none/r.sqlite"}}) {
        std::vector<std::string> arguments{"autotune", model, "--target", "cpu", "--out", folder + "/a.schedule"};
        arguments.insert(arguments.end(), words.begin(), words.end());
        const CommandResult result = run_tilewright(arguments);
        CHECK_MESSAGE(result.status == 2, words[0]);
        CHECK_MESSAGE(result.errors.starts_with("error: "), result.errors);
        CHECK_FALSE(std::filesystem::exists(folder + "/a.schedule"));
    }
}

TEST_CASE("without the target's GPU nothing is timed, which is said once, and the file holds default schedules") {
    const std::string folder = test::scratch_folder("untimed"), out = folder + "/a.schedule",
                      archive = "tests/data/changed_models/original.pt2";
    const CommandResult result =
        run_tilewright({"autotune", archive, "--target", "cuda", "--arch", "sm_80", "--out", out, "--records", folder + "/records.sqlite"});
    REQUIRE_MESSAGE(result.status == 0, result.errors);
    const std::string cause = "no schedule can be timed here: ";
    CHECK_MESSAGE((result.errors.find(cause) != std::string::npos && result.errors.find(cause) == result.errors.rfind(cause)),
                  result.errors);
    CHECK_MESSAGE(result.output.find(" not timed ") != std::string::npos, result.output);
    CHECK_MESSAGE(result.output.find("failed") == std::string::npos, result.output);
    const CommandResult check = run_tilewright({"check", out, archive});
    CHECK_MESSAGE(check.status == 0, check.output, check.errors);
}
