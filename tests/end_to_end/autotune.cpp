// `autotune` on the CPU: a file that runs, the same bytes from the same records, whole files whenever it is stopped.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dsl/schedule/schedule.h"
#include "tests/support/command.h"

using tilewright::test::CommandResult;
using tilewright::test::run_tilewright;

namespace {

const std::string model = "apps/models/whisper_enc.pt2";
const std::string recorded = "apps/models/whisper_enc.io.safetensors";

std::string content(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> arguments(const std::string &out, const std::string &records, const std::string &budget) {
    return {"autotune", model, "--target", "cpu", "--out", out, "--records", records, "--budget", budget};
}

/// Starts the command and sends it a signal after `milliseconds`.
void run_and_signal(std::vector<std::string> words, int signal, int milliseconds) {
    const std::string program = tilewright::test::build_folder() + "/bin/tilewright";
    std::vector<char *> argv{const_cast<char *>(program.c_str())};
    for (std::string &word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    pid_t child = 0;
    REQUIRE(posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
}

}  // namespace

TEST_CASE("a tuned schedule runs; tuning again measures nothing and writes the same bytes") {
    const std::string folder = tilewright::test::scratch_folder("autotune");
    const CommandResult first = run_tilewright(arguments(folder + "/a.schedule", folder + "/records.sqlite", "6"));
    REQUIRE_MESSAGE(first.status == 0, first.errors);
    CHECK(first.output.find("wrote " + folder + "/a.schedule") != std::string::npos);
    const CommandResult run = run_tilewright({"run", model, "--target", "cpu", "--schedule", folder + "/a.schedule", "--inputs", recorded, "--check", recorded});
    CHECK_MESSAGE(run.status == 0, run.output, run.errors);
    CHECK(run_tilewright({"check", folder + "/a.schedule", model}).status == 0);
    const CommandResult second = run_tilewright(arguments(folder + "/b.schedule", folder + "/records.sqlite", "6"));
    CHECK_MESSAGE(second.output.find("0 candidates measured") != std::string::npos, second.output);
    CHECK(content(folder + "/a.schedule") == content(folder + "/b.schedule"));
}

TEST_CASE("stopped at any moment, no file is broken and the next run goes on") {
    const std::string folder = tilewright::test::scratch_folder("autotune_stopped");
    const std::string path = folder + "/a.schedule";
    for (int i = 0; i < 6; ++i) {
        run_and_signal(arguments(path, folder + "/records.sqlite", "0"), i % 2 == 0 ? SIGKILL : SIGTERM, 150 + 400 * i);
        if (std::filesystem::exists(path)) {
            CHECK_NOTHROW(tilewright::read_schedule(path));
        }
    }
    const CommandResult last = run_tilewright(arguments(path, folder + "/records.sqlite", "1"));
    CHECK_MESSAGE(last.status == 0, last.errors);
    CHECK(run_tilewright({"check", path, model}).status == 0);
}
