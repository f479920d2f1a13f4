#include <atomic>
#include <csignal>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "apps/tilewright/command.h"
#include "apps/tilewright/tensors.h"
#include "autotune/tune.h"
#include "dsl/error.h"
#include "dsl/schedule/schedule_place.h"
#include "lowering/target.h"

namespace tilewright {
namespace {

/// This program's file: the children that measure run it too.
std::filesystem::path own_program() {
    std::error_code problem;
    std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", problem);
    if (problem) {
        throw UserError("autotune: cannot find this program's file in /proc/self/exe: " + problem.message() + "; mount /proc");
    }
    return file;
}

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// The first signal asks for the best so far; a second one ends the program as usual.
extern "C" void request_stop(int signal) {
    stop_requested = true;
    std::signal(signal, SIG_DFL);
}

void catch_signals() {
    struct sigaction action = {};
    action.sa_handler = request_stop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        ::sigaction(signal, &action, nullptr);
    }
}

std::string format_time(double seconds) {
    return seconds <= 0 ? "-" : seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

/// A heading, then one line that is written over on a terminal; elsewhere a line for each kernel.
class ProgressLine {
public:
    ProgressLine(double budget, std::string heading)
        : budget_(budget), heading_(std::move(heading)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}
    ~ProgressLine() { clear(); }

    void show(const TuneProgress &progress) {
        if (!heading_.empty()) {
            tell(std::exchange(heading_, ""));
        }
        if (!is_terminal_) {
            if (progress.kernel != last_) {
                tell(fmt::format("[{:5.1f} s] {} ({} of {})\n", progress.elapsed, progress.kernel,
                                 std::min(progress.done + 1, progress.kernels), progress.kernels));
            }
            last_ = progress.kernel;
            return;
        }
        const double share =
            budget_ > 0 ? std::min(1.0, progress.elapsed / budget_) : static_cast<double>(progress.done) / std::max(1, progress.kernels);
        constexpr int width = 16;
        const int full = static_cast<int>(share * width);
        const SearchCounts &search = progress.search;
        tell(fmt::format(
            "\r\033[K[{}{}] {}/{} {}: {} built, {} pruned, {} timed, best {}, {}", std::string(full, '#'), std::string(width - full, '.'),
            progress.done, progress.kernels, progress.kernel, search.built, search.pruned, search.timed(), format_time(search.best_seconds),
            share > 0 ? fmt::format("{:.0f} s left", progress.elapsed * (1 / share - 1)) : fmt::format("{:.0f} s", progress.elapsed)));
        shown_ = true;
    }
    bool heading_is_shown() const { return is_terminal_ && heading_.empty(); }
    void clear() {
        if (shown_) {
            tell("\r\033[K");
        }
        shown_ = false;
    }

private:
    /// A terminal that is gone or a full disk must not end the search: what cannot be told is not.
    static void tell(const std::string &text) {
        std::fputs(text.c_str(), stderr);
        std::fflush(stderr);
    }

    double budget_;
    std::string heading_;  ///< until it is shown
    bool is_terminal_, shown_ = false;
    std::string last_;
};

void print_report(const TuneReport &report, bool on_gpu, const std::string &heading, const std::string &path) {
    const auto known = [&](int value) { return on_gpu ? std::to_string(value) : "-"; };  // a CPU's compiler does not say what it takes
    fmt::print("{}", heading);
    if (!report.sizes.empty()) {
        fmt::print("tuned for sizes {}; --sizes chooses others\n", to_text(report.sizes));
    }
    fmt::print("{:<34} {:>5} {:>12} {:>12} {:>6} {:>7} {:>9} {:>10}\n", "kernel", "calls", "default", "tuned", "regs", "spill B",
               "occupancy", "candidates");
    double before = 0, after = 0;
    for (const TunedKernel &kernel : report.kernels) {
        const Measurement &m = kernel.measurement;
        const bool untimed = !report.timed && !kernel.from_records;
        const std::string tuned = kernel.at_load ? "at load" : untimed ? "not timed" : m.is_good() ? format_time(m.seconds) : "failed";
        const std::string candidates = kernel.from_records ? "records" : untimed ? "-" : std::to_string(kernel.candidates);
        fmt::print("{:<34} {:>5} {:>12} {:>12} {:>6} {:>7} {:>9} {:>10}\n", kernel.name, kernel.calls, format_time(kernel.default_seconds),
                   tuned, known(m.resources.registers), known(m.resources.spill_bytes),
                   m.resources.occupancy > 0 ? fmt::format("{} %", m.resources.occupancy) : "-", candidates);
        before += kernel.calls * kernel.default_seconds;
        after += kernel.calls * (m.is_good() ? m.seconds : kernel.default_seconds);
    }
    fmt::print("{} kernels, {} candidates in {:.1f} s{}: {} of kernels a run, {} by default; schedule in {}\n", report.kernels.size(),
               report.measured, report.seconds, report.stopped ? ", stopped" : "", format_time(after), format_time(before), path);
    if (!report.timed) {
        fmt::print("no kernel was timed: there is no such GPU here\n");
    }
    if (report.model_seconds > 0) {
        fmt::print("the whole model: {} a run, {} by default\n", format_time(report.model_seconds),
                   format_time(report.model_default_seconds));
    }
}

}  // namespace

int autotune_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("out", "schedule file to write; by default beside the archive, MODEL.cpu.schedule or MODEL.h200.schedule");
    line.add<double>("budget", "seconds; by default until the search of each kernel ends, some seconds a kernel");
    line.add<std::string>("records", "tuning records; by default records.sqlite in the cache folder");
    line.add<std::string>("inputs", "safetensors file with in0, in1, …, whose sizes are tuned for");
    line.add<std::string>("sizes", "symbolic sizes to tune for, as s0=8,s1=1024; by default 64, or the nearest that the model allows");
    if (!line.parse(arguments)) {
        return success;
    }
    Options options = line.options();
    options.out = line.get<std::string>("out");
    options.budget = line.positive_seconds("budget", 0);
    options.records = line.get<std::string>("records");
    options.inputs = line.get<std::string>("inputs");
    options.sizes = parse_sizes(line.get<std::string>("sizes"));
    const std::string archive = line.get<std::string>("MODEL.pt2");
    options.out = schedule_path(archive, options);
    require_schedule_place(options.out);
    const Target target = choose_target(options);
    std::string heading = fmt::format("{} on {}{}\n", archive, target.to_string(),
                                      options.target.empty() ? ", chosen by default; --target cpu or cuda chooses" : "");
    catch_signals();
    TuneReport report;
    {
        ProgressLine progress(options.budget, heading);
        report = tune_archive(archive, options, {own_program(), measure_command_name}, stop_requested,
                              [&](const TuneProgress &now) { progress.show(now); });
        if (progress.heading_is_shown() && ::isatty(STDOUT_FILENO) == 1) {
            heading.clear();
        }
    }
    write_schedule(report.file, options.out);
    print_report(report, target.kind == TargetKind::cuda, heading, options.out);
    return success;
}

}  // namespace tilewright
