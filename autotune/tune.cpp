#include "autotune/tune.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <spdlog/spdlog.h>

#include "autotune/partition_tuner.h"
#include "autotune/regroup.h"
#include "autotune/tune_report.h"
#include "autotune/tuning_run.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

constexpr double kept_for_groups = 0.8;  ///< of the search's time; the rest is for kernels taken apart or joined

TuneReport tune_model(TuningRun &run) {
    PartitionTuner tuner(run);
    if (!run.why_untimed.empty()) {
        spdlog::warn("no schedule can be timed here: {}; kernels that the tuning records do not know keep their default schedules",
                     run.why_untimed);
    }
    const Partition groups = run.compilation.partition;
    const std::vector<KernelSchedule> schedules = run.compilation.schedules;
    const bool regroups = run.options.fusion == "search" && run.options.schedule.empty();
    tuner.tune(groups, schedules, regroups ? kept_for_groups * run.search_end() : run.search_end());
    TuneFindings findings;
    if (regroups) {
        findings.fusion = regroup(run, tuner);
    }
    findings.model = settle_model(run, tuner, groups, schedules);
    findings.sizes = tune_other_sizes(run, tuner);
    if (run.may_measure() && !tuner.any_failed()) {
        run.records.store_search(run.model_key, {run.budget(), "", {}, 0, 0});
    }
    TuneReport report = report_tuning(run, tuner, findings);
    if (!run.why_untimed.empty()) {
        add_resources(run, report);
    }
    return report;
}

}  // namespace

TuneReport tune_archive(const std::string &archive, const Options &options, const std::vector<std::string> &child,
                        const std::atomic<bool> &stop, const TellProgress &tell) {
    if (options.records.empty() && Records::standard_path().empty()) {
        user_error("there is no cache folder for tuning records; set XDG_CACHE_HOME or HOME, or name a file with --records");
    }
    TuningRun run(archive, options, child, stop, tell);
    return tune_model(run);
}

std::string schedule_path(const std::string &archive, const Options &options) {
    if (!options.out.empty()) {
        return options.out;
    }
    const Target target = choose_target(options);
    std::string machine = "cpu";
    if (target.gpu) {
        machine = target.gpu->name.substr(target.gpu->name.rfind(' ') + 1);
        std::transform(machine.begin(), machine.end(), machine.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return std::filesystem::path(archive).replace_extension("." + machine + ".schedule").string();
}

}  // namespace tilewright
