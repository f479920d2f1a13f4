#include "lowering/choose_schedules.h"

#include <map>
#include <spdlog/spdlog.h>

#include "dsl/error.h"
#include "lowering/cuda/lower.h"

namespace tilewright {

KernelSchedule default_schedule(const Kernel &kernel, const Target &target) {
    KernelSchedule schedule;
    schedule.name = kernel.name;
    schedule.algorithm = kernel.hash.to_string();
    for (const Stage &stage : kernel.algorithm.stages) {
        schedule.fuses.push_back(stage.name());
    }
    schedule.variants.emplace_back();
    if (target.kind == TargetKind::cuda) {
        schedule.variants[0].directives = default_cuda_schedule(kernel, *target.gpu);
    }
    return schedule;
}

std::vector<KernelSchedule> choose_schedules(const Partition &partition, const ScheduleFile *file, const Target &target) {
    std::map<std::string, const KernelSchedule *> entries;
    if (file) {
        if (file->target != target.to_string()) {
            user_error("the schedule file for {} is for target \"{}\", not \"{}\"; run `tilewright autotune` for this target, or name the other with --target",
                       file->model, file->target, target.to_string());
        }
        for (const KernelSchedule &entry : file->kernels) {
            entries[entry.algorithm] = &entry;
        }
    }
    std::vector<KernelSchedule> schedules;
    for (const Kernel &kernel : partition.kernels) {
        const auto found = entries.find(kernel.hash.to_string());
        if (found != entries.end()) {
            schedules.push_back(*found->second);
            entries.erase(found);
        } else {
            if (file) {
                spdlog::warn("kernel {} (algorithm {}) has no entry in the schedule file; it runs under its default schedule", kernel.name,
                             kernel.hash.to_string());
            }
            schedules.push_back(default_schedule(kernel, target));
        }
    }
    for (const auto &[algorithm, entry] : entries) {
        schedule_error(entry->location, entry->name, fmt::format("stale: the model has no kernel \"{}\" with algorithm {} any more", entry->name, algorithm),
                       "run `tilewright check` to see what changed, then `tilewright autotune`, or remove the entry");
    }
    return schedules;
}

}  // namespace tilewright
