#include "autotune/measure/kernel_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "autotune/measure/roofline.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"

namespace tilewright {
namespace {

/// Whether the sizes of a kernel are known.
bool is_bound(const Kernel &kernel, const SymbolValues &symbols) {
    return std::all_of(kernel.algorithm.symbols.begin(), kernel.algorithm.symbols.end(),
                       [&](const auto &entry) { return symbols.contains(entry.first); });
}

}  // namespace

std::vector<KernelReport> report_kernels(const Compilation &compilation, std::span<const double> step_seconds,
                                         const SymbolValues &symbols) {
    const Partition &partition = compilation.partition;
    const GpuFacts *gpu = compilation.target.gpu;
    std::map<std::string, double> seconds;
    for (std::size_t s = 0; s < step_seconds.size(); ++s) {
        seconds[compilation.plan.steps[s].kernel] += step_seconds[s];
    }
    std::vector<KernelReport> reports(partition.kernels.size());
    for (const KernelCall &call : partition.calls) {
        ++reports[static_cast<std::size_t>(call.kernel)].calls;
    }
    for (std::size_t k = 0; k < reports.size(); ++k) {
        const Kernel &kernel = partition.kernels[k];
        KernelReport &report = reports[k];
        report.name = kernel.name;
        report.hash = kernel.hash.to_string();
        report.seconds = seconds[kernel.name];
        report.roofline_seconds = gpu && is_bound(kernel, symbols) ? report.calls * roofline(kernel.algorithm, symbols, *gpu).seconds : 0;
        report.resources = resources_of(compilation.kernels[k], gpu);
        for (const Stage &stage : kernel.algorithm.stages) {
            report.stages.push_back(stage.name());
        }
    }
    return reports;
}

std::vector<std::vector<NarrowAccess>> report_narrow_accesses(const Compilation &compilation) {
    std::vector<std::vector<NarrowAccess>> result(compilation.partition.kernels.size());
    for (std::size_t k = 0; k < result.size() && compilation.target.gpu; ++k) {
        const Directives &directives = compilation.schedules[k].variants[0].directives;
        if (!find_engine(directives)) {
            result[k] = narrow_accesses(lower_to_tiles(compilation.partition.kernels[k], directives, *compilation.target.gpu));
        }
    }
    return result;
}

std::vector<FusionCost> report_fusions(const Compilation &compilation, std::span<const double> step_seconds, const Compilation &fused,
                                       std::span<const double> fused_seconds, const SymbolValues &symbols) {
    std::vector<KernelReport> apart = report_kernels(compilation, step_seconds, symbols);
    std::vector<KernelReport> together = report_kernels(fused, fused_seconds, symbols);
    std::set<Hash> known;
    for (const Kernel &kernel : compilation.partition.kernels) {
        known.insert(kernel.hash);
    }
    std::vector<FusionCost> costs;
    for (const KernelCall &call : fused.partition.calls) {
        if (!known.insert(fused.partition.kernels[static_cast<std::size_t>(call.kernel)].hash).second) {
            continue;
        }
        const std::set<std::string> stages(call.stages.begin(), call.stages.end());
        FusionCost cost;
        for (const KernelCall &part : compilation.partition.calls) {
            if (std::all_of(part.stages.begin(), part.stages.end(), [&](const std::string &stage) { return stages.contains(stage); })) {
                const KernelReport &report = apart[static_cast<std::size_t>(part.kernel)];
                cost.kernels.push_back(report.name);
                cost.apart_seconds += report.seconds / report.calls;
            }
        }
        if (cost.kernels.size() > 1) {
            cost.fused = together[static_cast<std::size_t>(call.kernel)];
            cost.fused.seconds /= cost.fused.calls;
            cost.fused.roofline_seconds /= cost.fused.calls;
            cost.fused.calls = 1;
            costs.push_back(std::move(cost));
        }
    }
    return costs;
}

}  // namespace tilewright
