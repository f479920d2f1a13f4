// The machine that code is compiled for, chosen from the options.
#pragma once

#include <string>

#include "lowering/options.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "runtime/plan.h"

namespace tilewright {

struct Target {
    TargetKind kind = TargetKind::cpu;
    std::string device;             ///< "sm_90a", or the CPU's feature string
    const GpuFacts *gpu = nullptr;  ///< of a GPU target
    std::string to_string() const;  ///< "cpu", "cuda sm_90a": a schedule file's target line
};

/// The target that the options name; without one, cuda where a GPU answers, else cpu. Needs no GPU for a named architecture.
/// UserError for a target or an architecture that is none.
Target choose_target(const Options &options);

}  // namespace tilewright
