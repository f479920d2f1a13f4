#include "autotune/measure.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/compare.h"
#include "autotune/draw_inputs.h"
#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "runtime/executor.h"
#include "runtime/plan_archive.h"

extern char **environ;

namespace tilewright {
namespace {

// ---- The child -----------------------------------------------------------------------------------------------------------------------

std::unique_ptr<Executor> load(const std::string &path) {
    const std::string bytes = read_file(path);
    std::optional<Plan> plan = load_plan({reinterpret_cast<const std::byte *>(bytes.data()), bytes.size()});
    internal_assert(plan.has_value(), "{} is no plan", path);
    return plan->target == TargetKind::cpu ? make_cpu_executor(std::move(*plan)) : make_cuda_executor(std::move(*plan));
}

double time_once(Executor &executor, const std::vector<HostTensor> &inputs, int repeats) {
    const std::vector<double> steps = executor.profile(inputs, repeats);
    return std::accumulate(steps.begin(), steps.end(), 0.0);
}

std::map<std::string, std::int64_t> parse_symbols(const std::string &text) {
    std::map<std::string, std::int64_t> sizes;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
        const std::size_t equals = item.find('=');
        sizes[item.substr(0, equals)] = std::stoll(item.substr(equals + 1));
    }
    return sizes;
}

std::string first_difference(const std::vector<HostTensor> &expected, const std::vector<HostTensor> &actual) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (const Comparison comparison = compare(expected[i], actual[i]); comparison.mismatch) {
            return fmt::format("output {} differs from the default schedule's: {}", i, *comparison.mismatch);
        }
    }
    return "";
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

// ---- The parent ----------------------------------------------------------------------------------------------------------------------

struct Child {
    pid_t process = -1;
    int output = -1;
};

Child start(const std::vector<std::string> &arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        internal_error("no pipe for the measuring process");
    }
    std::vector<char *> argv{const_cast<char *>("tilewright"), const_cast<char *>(measure_command)};
    for (const std::string &argument : arguments) {
        argv.push_back(const_cast<char *>(argument.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    Child child;
    const int error = posix_spawn(&child.process, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    internal_assert(error == 0, "the measuring process does not start");
    child.output = ends[0];
    return child;
}

/// Reads lines until the child ends or is silent for `timeout` seconds; returns why it ended, empty for a good end.
template<typename OnLine>
std::string follow(const Child &child, double timeout, OnLine &&on_line) {
    std::string pending;
    std::string end;
    for (;;) {
        pollfd wait{child.output, POLLIN, 0};
        const int ready = ::poll(&wait, 1, static_cast<int>(timeout * 1000));
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready == 0) {
            end = fmt::format("did not end within {} s", timeout);
            ::kill(child.process, SIGKILL);
            break;
        }
        char block[4096];
        const ssize_t count = ::read(child.output, block, sizeof block);
        if (count <= 0) {
            break;
        }
        pending.append(block, static_cast<std::size_t>(count));
        for (std::size_t line; (line = pending.find('\n')) != std::string::npos; pending.erase(0, line + 1)) {
            on_line(pending.substr(0, line));
        }
    }
    ::close(child.output);
    int status = 0;
    while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (end.empty() && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        end = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status)) : "ended with an error";
    }
    return end;
}

}  // namespace

int measure_plans(const std::vector<std::string> &arguments) {
    internal_assert(arguments.size() >= 3, "{} needs sizes, a number and plans", measure_command);
    const auto sizes = parse_symbols(arguments[0]);
    const std::size_t first = std::stoul(arguments[1]);
    const std::vector<std::string> paths(arguments.begin() + 2, arguments.end());
    std::vector<std::unique_ptr<Executor>> executors(paths.size());
    executors[0] = load(paths[0]);
    const std::vector<HostTensor> inputs = draw_inputs(executors[0]->plan(), sizes);
    const std::vector<HostTensor> expected = executors[0]->run_host(inputs);
    std::vector<double> seconds(paths.size(), 0);
    double best = 0;
    for (std::size_t i = first; i < paths.size(); ++i) {
        std::string failure;
        try {
            executors[i] = executors[i] ? std::move(executors[i]) : load(paths[i]);
            failure = first_difference(expected, executors[i]->run_host(inputs));
            seconds[i] = failure.empty() ? time_once(*executors[i], inputs, 5) : 0;
        } catch (const std::exception &error) {
            failure = error.what();
        }
        if (!failure.empty()) {
            executors[i].reset();
        } else if (best == 0 || seconds[i] < best) {
            best = seconds[i];
        }
        fmt::print("{} {:.9e} {}\n", i, seconds[i], one_line(failure));
        std::fflush(stdout);
    }
    for (int round = 0; round < 4; ++round) {  // in turns, so that noise does not choose the winner
        for (std::size_t i = 0; i < paths.size(); ++i) {
            if (executors[i] && seconds[i] > 0 && seconds[i] <= 1.5 * best) {
                seconds[i] = std::min(seconds[i], time_once(*executors[i], inputs, 10));
            }
        }
    }
    for (std::size_t i = first; i < paths.size(); ++i) {
        if (seconds[i] > 0) {
            fmt::print("{} {:.9e} \n", i, seconds[i]);
        }
    }
    return 0;
}

std::vector<TuningRecord> measure(const std::vector<Plan> &plans, const MeasureOptions &options) {
    std::string sizes;
    for (const auto &[symbol, value] : options.sizes) {
        sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", symbol, value);
    }
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const std::vector<std::byte> bytes = save_plan(plans[i]);
        paths.push_back(fmt::format("{}/measure-{}-{}.plan", options.folder, ::getpid(), i));
        write_file_atomically(paths.back(), {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    }
    std::vector<TuningRecord> records(plans.size(), {0, "was not measured"});
    for (std::size_t first = 0; first < plans.size();) {
        std::vector<std::string> arguments{sizes, std::to_string(first)};
        arguments.insert(arguments.end(), paths.begin(), paths.end());
        std::size_t next = first;
        const std::string end = follow(start(arguments), options.timeout, [&](const std::string &line) {
            std::istringstream words(line);
            std::size_t index = 0;
            double seconds = 0;
            if (words >> index >> seconds && index < records.size()) {
                std::string failure;
                words.get();
                std::getline(words, failure);
                records[index] = {seconds, failure};
                next = std::max(next, index + 1);
            }
        });
        if (next >= plans.size()) {
            break;
        }
        records[next] = {0, end.empty() ? "ended early" : end};  // the culprit; those after it get a process of their own
        if (next == 0) {
            break;  // the reference itself
        }
        first = next + 1;
    }
    for (const std::string &path : paths) {
        ::unlink(path.c_str());
    }
    return records;
}

}  // namespace tilewright
