#include "lowering/choose_schedules.h"

#include <algorithm>
#include <map>
#include <set>
#include <spdlog/spdlog.h>

#include "dsl/error.h"
#include "lowering/cpu_schedules/default_schedule.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/matmul_engine.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/schedule_file.h"
#include "runtime/cuda/cublaslt_engine.h"

namespace tilewright {

/// Float32 and float64 have no place on the matrix unit: a library's large products are the fastest there.
static bool suits_cublaslt(const Kernel &kernel, const Target &target, const Options &options) {
    const bool has_gpu = target.device.starts_with("sm_");  // the emulated one has no capability
    return has_gpu && allows_engine(options, "cublaslt") && is_large_float_product(kernel) && have_cublaslt();
}

KernelSchedule default_schedule(const Kernel &kernel, const Target &target, const FixedInputs &fixed, const Options &options) {
    KernelSchedule schedule;
    schedule.name = kernel.name;
    schedule.algorithm = kernel.hash.to_string();
    schedule.fuses = stages_of(kernel);
    schedule.variants.emplace_back();
    if (target.kind == TargetKind::cuda && suits_cublaslt(kernel, target, options)) {
        schedule.variants[0].directives = engine_schedule(EngineLibrary::cublaslt, kernel);
    } else if (target.kind == TargetKind::cuda) {
        schedule.variants[0].directives = default_cuda_schedule(kernel, *target.gpu, options.deterministic);
    } else {
        schedule.variants[0].directives = default_cpu_schedule(kernel, fixed);
    }
    return schedule;
}

MatchedEntries match_entries(const Partition &partition, const ScheduleFile &file) {
    std::map<std::string, std::vector<const KernelSchedule *>> entries;
    for (const KernelSchedule &entry : file.kernels) {
        entries[entry.algorithm].push_back(&entry);
    }
    MatchedEntries matched;
    std::set<const KernelSchedule *> used;
    for (const Kernel &kernel : partition.kernels) {
        const std::vector<const KernelSchedule *> &candidates = entries[kernel.hash.to_string()];
        const auto named =
            std::find_if(candidates.begin(), candidates.end(), [&](const KernelSchedule *entry) { return entry->name == kernel.name; });
        matched.of_kernel.push_back(named != candidates.end() ? *named : candidates.empty() ? nullptr : candidates.front());
        used.insert(matched.of_kernel.back());
    }
    for (const KernelSchedule &entry : file.kernels) {
        if (!used.contains(&entry)) {
            matched.stale.push_back(&entry);
        }
    }
    return matched;
}

[[noreturn]] static void refuse_other_target(const ScheduleFile &file, const Target &target) {
    const std::string cuda = "cuda ";
    const bool other_gpu = file.target.starts_with(cuda) && target.kind == TargetKind::cuda;
    user_error(
        "the schedule file for {} is for target \"{}\", not \"{}\"; run `tilewright autotune` for this target, or name the other with {}",
        file.model, file.target, target.to_string(),
        other_gpu ? "--arch " + file.target.substr(cuda.size()) : "--target " + file.target.substr(0, file.target.find(' ')));
}

std::vector<KernelSchedule> choose_schedules(const Partition &partition, const ScheduleFile *file, const Target &target,
                                             const std::vector<FixedInputs> &fixed, const Options &options) {
    if (file && file->target != target.to_string()) {
        refuse_other_target(*file, target);
    }
    const MatchedEntries matched =
        file ? match_entries(partition, *file) : MatchedEntries{std::vector<const KernelSchedule *>(partition.kernels.size()), {}};
    for (const KernelSchedule *entry : matched.stale) {
        schedule_error(entry->location, entry->name,
                       fmt::format("stale: the model has no kernel \"{}\" with algorithm {} any more", entry->name, entry->algorithm),
                       "run `tilewright check` to see what changed, then `tilewright autotune`, or remove the entry");
    }
    std::vector<KernelSchedule> schedules;
    for (std::size_t k = 0; k < partition.kernels.size(); ++k) {
        const Kernel &kernel = partition.kernels[k];
        if (const KernelSchedule *entry = matched.of_kernel[k]) {
            schedules.push_back(*entry);
        } else {
            if (file) {
                spdlog::warn("kernel {} (algorithm {}) has no entry in the schedule file; it runs under its default schedule", kernel.name,
                             kernel.hash.to_string());
            }
            schedules.push_back(default_schedule(kernel, target, k < fixed.size() ? fixed[k] : FixedInputs(), options));
        }
    }
    return schedules;
}

bool allows_engine(const Options &options, const std::string &library) {
    return options.engines == "all" || ("," + options.engines + ",").find("," + library + ",") != std::string::npos;
}

static void require_allowed(const Directive &directive, const Options &options) {
    const SourceLocation &at = directive.location;
    const std::string where = fmt::format("{}:{}:{}: {}", at.file, at.line, at.column, directive.to_string());
    if (directive.name == "atomic" && options.deterministic) {
        user_error("{} gives other bits on every run; remove it, or leave out --deterministic", where);
    }
    const auto *engine =
        directive.name == "engine" && !directive.arguments.empty() ? std::get_if<std::string>(&directive.arguments[0]) : nullptr;
    if (engine && !allows_engine(options, engine->substr(0, engine->find(':')))) {
        user_error("{} is not allowed by --engines {}; remove it, or tune with these engines", where, options.engines);
    }
}

void require_allowed(const std::vector<KernelSchedule> &schedules, const Options &options) {
    for (const KernelSchedule &schedule : schedules) {
        for (const ScheduleVariant &variant : schedule.variants) {
            for (const Directive &directive : variant.directives) {
                require_allowed(directive, options);
            }
        }
    }
}

}  // namespace tilewright
