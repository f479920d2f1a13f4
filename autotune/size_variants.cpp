#include "autotune/size_variants.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "autotune/kernels_at_load.h"

namespace tilewright {
namespace {

constexpr double worth_a_variant = 0.95;          ///< of the usual schedule's time
constexpr double most_bytes = 1 << 30;            ///< of a kernel's tensors at a larger size
constexpr std::size_t kernels_with_variants = 8;  ///< the costliest

std::optional<ScheduleVariant::Comparison> boundary(const Algorithm &algorithm, const SymbolValues &usual, const SymbolValues &other) {
    for (const Stage &stage : algorithm.stages) {
        for (int i = 0; i < stage.rank(); ++i) {
            const Extent &extent = stage.extents[static_cast<std::size_t>(i)];
            const std::int64_t here = extent.evaluate(usual), there = extent.evaluate(other);
            if (here != there) {
                const auto between = static_cast<std::int64_t>(std::sqrt(static_cast<double>(here) * static_cast<double>(there)));
                return ScheduleVariant::Comparison{fmt::format("{}.d{}", stage.name(), i), there < here ? "<=" : ">", between, {}};
            }
        }
    }
    return std::nullopt;
}

double bytes_at(const Algorithm &algorithm, const SymbolValues &sizes) {
    double bytes = 0;
    const auto add = [&](const TensorMeta &meta) {
        double elements = 1;
        for (const Extent &size : meta.sizes) {
            elements *= static_cast<double>(size.evaluate(sizes));
        }
        bytes += elements * static_cast<double>(size_in_bytes(meta.dtype));
    };
    std::for_each(algorithm.inputs.begin(), algorithm.inputs.end(), [&](const TensorInput &input) { add(input.meta); });
    std::for_each(algorithm.outputs.begin(), algorithm.outputs.end(), [&](const TensorOutput &output) { add(output.meta); });
    return bytes;
}

std::string to_text(const Kernel &kernel, const SymbolValues &sizes) {
    std::string text;
    for (const auto &[symbol, range] : kernel.algorithm.symbols) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", symbol, sizes.at(symbol));
    }
    return text;
}

class OtherSizes {
public:
    OtherSizes(TuningRun &run, PartitionTuner &tuner) : run_(run), tuner_(tuner) {}

    std::map<std::size_t, SizeVariants> tune() {
        const std::vector<std::size_t> kernels = costliest();
        std::map<std::size_t, SizeVariants> result;
        double left = static_cast<double>(2 * kernels.size());
        for (const std::size_t k : kernels) {
            SizeVariants found;
            std::vector<SizedSchedule> others;
            for (const double factor : {0.125, 8.0}) {
                const double now = run_.elapsed();
                const SymbolValues sizes = scaled(factor);
                if (std::optional<SizedSchedule> other = search_at(k, sizes, now + (run_.sizes_end() - now) / left--, found.notes)) {
                    others.push_back(std::move(*other));
                }
            }
            const Kernel &kernel = run_.compilation.partition.kernels[k];
            found.variants = variants_by_size(kernel.algorithm, run_.symbols, usual(k), others);
            if (found.variants.size() > 1) {
                result.emplace(k, std::move(found));
            }
        }
        return result;
    }

private:
    const Directives &usual(std::size_t k) const { return run_.compilation.schedules[k].variants[0].directives; }

    std::vector<std::size_t> costliest() const {
        const Partition &groups = run_.compilation.partition;
        const std::vector<bool> at_load = kernels_at_load(run_.compilation.program, groups);
        const std::vector<double> seconds = tuner_.costs(groups);
        std::vector<std::size_t> kernels;
        for (std::size_t k = 0; k < seconds.size(); ++k) {
            const bool varies = !groups.kernels[k].algorithm.symbols.empty() && run_.compilation.schedules[k].variants.size() == 1;
            if (varies && !at_load[k] && tuner_.outcome(groups.kernels[k])) {
                kernels.push_back(k);
            }
        }
        std::stable_sort(kernels.begin(), kernels.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
        kernels.resize(std::min(kernels.size(), kernels_with_variants));
        return kernels;
    }

    SymbolValues scaled(double factor) const {
        SymbolValues sizes = run_.symbols;
        for (auto &[symbol, value] : sizes) {
            const auto range = run_.compilation.program.symbols.at(symbol);
            value = std::clamp(static_cast<std::int64_t>(std::llround(static_cast<double>(value) * factor)),
                               std::max<std::int64_t>(range.min, 1), range.max);
        }
        return sizes;
    }

    std::optional<SizedSchedule> search_at(std::size_t k, const SymbolValues &sizes, double until, std::vector<std::string> &notes) {
        const Kernel &kernel = run_.compilation.partition.kernels[k];
        if (!boundary(kernel.algorithm, run_.symbols, sizes) || bytes_at(kernel.algorithm, sizes) > most_bytes) {
            return std::nullopt;
        }
        const std::optional<Outcome> found = tuner_.search_at(k, usual(k), sizes, until);
        if (!found || !found->measurement.is_good() || found->seconds() > worth_a_variant * found->default_seconds) {
            return std::nullopt;
        }
        notes.push_back(fmt::format("{}: {:.2f} us, {:.2f} us under the other schedule", to_text(kernel, sizes), found->seconds() * 1e6,
                                    found->default_seconds * 1e6));
        return SizedSchedule{sizes, found->directives};
    }

    TuningRun &run_;
    PartitionTuner &tuner_;
};

}  // namespace

std::vector<ScheduleVariant> variants_by_size(const Algorithm &algorithm, const SymbolValues &usual_sizes, const Directives &usual,
                                              const std::vector<SizedSchedule> &others) {
    std::vector<ScheduleVariant> variants;
    for (const SizedSchedule &other : others) {
        if (const auto condition = boundary(algorithm, usual_sizes, other.sizes)) {
            variants.push_back({{*condition}, other.directives});
        }
    }
    variants.push_back({{}, usual});
    return variants;
}

std::map<std::size_t, SizeVariants> tune_other_sizes(TuningRun &run, PartitionTuner &tuner) {
    return run.symbols.empty() ? std::map<std::size_t, SizeVariants>() : OtherSizes(run, tuner).tune();
}

}  // namespace tilewright
