#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include "apps/tilewright/command.h"
#include "autotune/autotune.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

std::atomic<bool> stop = false;

void ask_to_stop(int) { stop = true; }

/// One line that is written over on a terminal; elsewhere a line for each kernel.
class ProgressLine {
public:
    explicit ProgressLine(double budget) : budget_(budget), terminal_(::isatty(2) != 0) {}
    ~ProgressLine() { clear(); }

    void show(const TuningProgress &p) {
        if (!terminal_) {
            if (p.kernel != shown_) {
                fmt::print(stderr, "kernel {}/{} {}\n", p.kernel, p.kernels, p.name);
                shown_ = p.kernel;
            }
            return;
        }
        constexpr int width = 20;
        const int filled = p.kernels > 0 ? width * (p.kernel - 1) / p.kernels : 0;
        const std::string left = budget_ > 0 ? fmt::format(", {:.0f} s left", std::max(0.0, budget_ - p.elapsed)) : "";
        fmt::print(stderr, "\r\033[K[{:=<{}}{: <{}}] {}/{} {}  built {} failed {} timed {}  best {:.1f} us  {:.0f} s{}", "", filled, "", width - filled,
                   p.kernel, p.kernels, p.name, p.built, p.failed, p.timed, p.best_seconds * 1e6, p.elapsed, left);
        std::fflush(stderr);
    }
    void clear() {
        if (terminal_) {
            fmt::print(stderr, "\r\033[K");
        }
    }

private:
    double budget_;
    bool terminal_;
    int shown_ = 0;
};

void print_table(const TuningReport &report) {
    fmt::print("{:<36} {:>5} {:>11} {:>11} {:>7} {:>10} {:>7}\n", "kernel", "calls", "default us", "tuned us", "gain", "candidates", "failed");
    double before = 0;
    double after = 0;
    for (const KernelOutcome &kernel : report.kernels) {
        const bool known = kernel.best_seconds > 0;
        before += kernel.calls * kernel.default_seconds;
        after += kernel.calls * kernel.best_seconds;
        fmt::print("{:<36} {:>5} {:>11} {:>11} {:>7} {:>10} {:>7}  {}\n", kernel.kernel, kernel.calls,
                   known ? fmt::format("{:.2f}", kernel.default_seconds * 1e6) : "-", known ? fmt::format("{:.2f}", kernel.best_seconds * 1e6) : "-",
                   known ? fmt::format("{:.2f}x", kernel.default_seconds / kernel.best_seconds) : "-", kernel.candidates, kernel.failures,
                   known ? "" : kernel.remark);
    }
    fmt::print("{:<36} {:>5} {:>11.2f} {:>11.2f} {:>7}\n", "all kernels", "", before * 1e6, after * 1e6, after > 0 ? fmt::format("{:.2f}x", before / after) : "-");
    fmt::print("{} on {}: {} candidates measured{}; wrote {}\n", report.file.model, report.target, report.measured,
               report.interrupted ? ", stopped early" : report.measured == 0 ? ", all known from the records" : "", report.path);
}

}  // namespace

int autotune_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("out", "schedule file to write; by default beside the archive");
    line.add<double>("budget", "seconds; by default until the search is done");
    line.add<std::string>("records", "tuning records; by default in the cache folder");
    line.add<std::string>("sizes", "symbolic sizes to tune for, as s0=8,s1=1024");
    if (!line.parse(arguments)) {
        return success;
    }
    Options options = line.options();
    options.out = line.get<std::string>("out");
    options.budget = line.get<double>("budget");
    if (options.budget < 0) {
        user_error("--budget {}: give seconds, 0 for no limit", options.budget);
    }
    options.records = line.get<std::string>("records");
    options.sizes = parse_sizes(line.get<std::string>("sizes"));
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    TuningReport report;
    {
        ProgressLine progress(options.budget);
        report = autotune(line.get<std::string>("MODEL.pt2"), options, {[&](const TuningProgress &p) { progress.show(p); }, &stop});
    }
    print_table(report);
    return success;
}

}  // namespace tilewright
