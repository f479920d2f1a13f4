#include "autotune/tune_report.h"

#include <fmt/format.h>

#include "autotune/kernels_at_load.h"
#include "autotune/measure/resources.h"
#include "autotune/measure/roofline.h"
#include "lowering/compile_kernels.h"
#include "lowering/schedule_file.h"

namespace tilewright {
namespace {

/// "34.40 us, 96 % of the roofline, default 41.20 us, 40 registers, 0 bytes spilled, 64 bytes shared, occupancy 100 %", under its sizes.
std::string note_of(const TuningRun &run, const Kernel &kernel, const Outcome &outcome) {
    const Measurement &measurement = outcome.measurement;
    std::string note;
    for (const auto &[symbol, range] : kernel.algorithm.symbols) {
        note += fmt::format("{}={} ", symbol, run.symbols.at(symbol));
    }
    note += fmt::format("{:.2f} us", measurement.seconds * 1e6);
    const GpuFacts *gpu = run.compilation.target.gpu;
    if (gpu) {
        note +=
            fmt::format(", {:.0f} % of the roofline", 100 * roofline(kernel.algorithm, run.symbols, *gpu).seconds / measurement.seconds);
    }
    note += fmt::format(", default {:.2f} us", outcome.default_seconds * 1e6);
    if (const Resources &resources = measurement.resources; resources.registers > 0) {  // a library's kernel tells nothing
        note += fmt::format(", {} registers, {} bytes spilled, {} bytes shared, occupancy {} %", resources.registers, resources.spill_bytes,
                            resources.shared_bytes, resources.occupancy);
    }
    return note;
}

std::vector<std::string> notes_of(const TuningRun &run, const Kernel &kernel, const Outcome &outcome, const FusionNotes &fusion) {
    std::vector<std::string> notes;
    if (outcome.measurement.is_good() && outcome.measurement.seconds > 0) {
        notes.push_back(note_of(run, kernel, outcome));
    }
    if (const auto found = fusion.find(kernel.hash); found != fusion.end()) {
        notes.insert(notes.end(), found->second.begin(), found->second.end());
    }
    return notes;
}

/// A kernel that got its default schedule back for the sake of the whole model has the default's measurement.
Outcome as_settled(TuningRun &run, const Kernel &kernel, const KernelSchedule &schedule, Outcome outcome) {
    const Directives &directives = schedule.variants[0].directives;
    if (directives != outcome.directives && directives == outcome.default_directives) {
        outcome.measurement =
            run.records.find(run.key_of(kernel), print(directives)).value_or(Measurement{outcome.default_seconds, "", {}});
        outcome.directives = directives;
    }
    return outcome;
}

}  // namespace

void add_resources(const TuningRun &run, TuneReport &report) {
    const Compilation &c = run.compilation;
    const std::vector<CompiledKernel> compiled = compile_kernels(c.partition.kernels, c.schedules, c.target, run.options.jobs);
    for (std::size_t k = 0; k < compiled.size(); ++k) {
        if (report.kernels[k].measurement.seconds <= 0) {
            report.kernels[k].measurement.resources = resources_of(compiled[k], c.target.gpu);
        }
    }
}

TuneReport report_tuning(TuningRun &run, const PartitionTuner &tuner, const TuneFindings &findings) {
    const Partition &partition = run.compilation.partition;
    const std::vector<bool> at_load = kernels_at_load(run.compilation.program, partition);
    const std::vector<int> calls = count_calls(partition);
    TuneReport result;
    result.file = schedule_file_of(run.compilation);
    for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
        TunedKernel tuned;
        tuned.name = partition.kernels[k].name;
        tuned.calls = calls[k];
        tuned.at_load = at_load[k];
        if (const Outcome *known = at_load[k] ? nullptr : tuner.outcome(partition.kernels[k])) {
            const Outcome outcome = as_settled(run, partition.kernels[k], run.compilation.schedules[k], *known);
            tuned.default_seconds = outcome.default_seconds;
            tuned.measurement = outcome.measurement;
            tuned.candidates = outcome.candidates;
            tuned.from_records = outcome.from_records;
            result.file.kernels[k].notes = notes_of(run, partition.kernels[k], outcome, findings.fusion);
        }
        if (const auto sized = findings.sizes.find(k); sized != findings.sizes.end()) {
            KernelSchedule &entry = result.file.kernels[k];
            entry.variants = sized->second.variants;
            entry.notes.insert(entry.notes.end(), sized->second.notes.begin(), sized->second.notes.end());
        }
        result.kernels.push_back(std::move(tuned));
    }
    result.model_default_seconds = findings.model.default_seconds;
    result.model_seconds = findings.model.tuned_seconds;
    result.sizes = run.symbols;
    result.measured = tuner.measured();
    result.seconds = run.elapsed();
    result.stopped = run.stop;
    result.timed = run.why_untimed.empty();
    return result;
}

}  // namespace tilewright
