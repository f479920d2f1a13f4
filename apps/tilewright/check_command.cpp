#include <algorithm>
#include <set>

#include "apps/tilewright/command.h"
#include "dsl/error.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/choose_schedules.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/schedule_axes.h"
#include "lowering/pipeline.h"

namespace tilewright {
namespace {

/// Why the model has no kernel of an entry's algorithm any more: what there is instead, as far as names and places tell.
std::string cause(const KernelSchedule &entry, const Partition &partition) {
    for (const Kernel &kernel : partition.kernels) {
        if (kernel.hash.to_string() == entry.algorithm) {
            return fmt::format("the model's kernel {} has this algorithm and an entry of its own", kernel.name);
        }
        if (kernel.name == entry.name) {
            return fmt::format("the model's kernel of this name has algorithm {}", kernel.hash.to_string());
        }
    }
    const std::set<std::string> places(entry.covers.begin(), entry.covers.end());
    for (const KernelCall &call : partition.calls) {
        if (places.contains(call.place)) {
            return fmt::format("its place {} is now computed by kernel {}", call.place, partition.kernels[call.kernel].name);
        }
    }
    return "the model has no kernel of this name and none of its places";
}

/// The faults that only lowering finds: loops that ask for too many threads, tiles that do not fit.
void check_lowering(const Kernel &kernel, const KernelSchedule &entry, const Target &target) {
    for (const ScheduleVariant &variant : entry.variants) {
        const auto is_engine = [](const Directive &directive) { return directive.name == "engine"; };
        if (target.gpu && std::none_of(variant.directives.begin(), variant.directives.end(), is_engine)) {
            lower_to_tiles(kernel, variant.directives, *target.gpu);
        }
    }
}

}  // namespace

int check_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("FILE.schedule").positional("MODEL.pt2");
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string path = line.get<std::string>("FILE.schedule");
    const ScheduleFile file = read_schedule(path);
    Options options;
    options.schedule = path;
    options.target = file.target.starts_with("cuda") ? "cuda" : file.target;
    if (const std::size_t blank = file.target.find(' '); blank != std::string::npos) {
        options.architecture = file.target.substr(blank + 1);
    }
    const Compilation c = compile_archive(line.get<std::string>("MODEL.pt2"), options, PipelineStep::partition);
    const MatchedEntries matched = match_entries(c.partition, file);
    for (const KernelSchedule *entry : matched.stale) {
        fmt::print("{}:{}: kernel {} is stale: {}\n", path, entry->location.line, entry->name, cause(*entry, c.partition));
    }
    for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
        const Kernel &kernel = c.partition.kernels[k];
        if (const KernelSchedule *entry = matched.of_kernel[k]) {
            check_entry(schedule_axes(kernel), *entry, c.target.kind == TargetKind::cpu ? ScheduleTarget::cpu : ScheduleTarget::cuda);
            check_lowering(kernel, *entry, c.target);
        } else {
            fmt::print("{}: kernel {} (algorithm {}) has no entry{}\n", path, kernel.name, kernel.hash.to_string(),
                       matched.stale.empty() ? "; it runs under its default schedule" : "");
        }
    }
    if (!matched.stale.empty()) {
        fmt::print("{}: {} of {} entries are stale, and the file is refused; run `tilewright autotune`, or remove them\n", path, matched.stale.size(), file.kernels.size());
        return mismatch;
    }
    fmt::print("{}: {} kernels fit {}\n", path, file.kernels.size(), line.get<std::string>("MODEL.pt2"));
    return success;
}

}  // namespace tilewright
