// What is known of a model's kernels: time, share of the roofline, resources, and what one more fusion would have cost. `explain` shows it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autotune/measure/resources.h"
#include "lowering/passes/narrow_accesses.h"
#include "lowering/pipeline.h"

namespace tilewright {

struct KernelReport {
    std::string name, hash;
    int calls = 0;
    double seconds = 0;           ///< of all calls; 0 where nothing was timed
    double roofline_seconds = 0;  ///< likewise the least that they could take; 0 on the CPU
    Resources resources;
    std::vector<std::string> stages;
};

/// `step_seconds`: Executor::profile(), or empty. `symbols` may be empty where nothing was timed.
std::vector<KernelReport> report_kernels(const Compilation &compilation, std::span<const double> step_seconds, const SymbolValues &symbols);

/// For each kernel, what its first schedule moves in narrow accesses; nothing on the CPU and for engines.
std::vector<std::vector<NarrowAccess>> report_narrow_accesses(const Compilation &compilation);

/// A kernel that the model would have if all were fused that may be, and the calls that it stands for now.
struct FusionCost {
    std::vector<std::string> kernels;  ///< that run apart
    double apart_seconds = 0;
    KernelReport fused;  ///< one call
};
/// `fused`: the same model with everything fused (`--fusion max`).
std::vector<FusionCost> report_fusions(const Compilation &compilation, std::span<const double> step_seconds, const Compilation &fused,
                                       std::span<const double> fused_seconds, const SymbolValues &symbols);

}  // namespace tilewright
