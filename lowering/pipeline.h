// The compiler from archive to plan.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph/program.h"
#include "dsl/schedule/schedule.h"
#include "lowering/assemble_plan.h"
#include "lowering/compile_kernels.h"
#include "lowering/fusion/fusion.h"
#include "lowering/options.h"
#include "lowering/target.h"
#include "lowering/translate/translate.h"

namespace tilewright {

/// What the steps make; those beyond the last one that ran are empty.
struct Compilation {
    Target target;
    Program program;  ///< after import, then after functionalize, then after decompose
    Translated translated;
    Partition partition;
    std::vector<KernelSchedule> schedules;  ///< of each kernel
    std::vector<CompiledKernel> kernels;
    Plan plan;
};

enum class PipelineStep { import, functionalize, decompose, translate, partition, schedule, compile, assemble };

/// Runs the steps up to and including `last`; each is logged and timed (TILEWRIGHT_LOG=debug). `options.schedule` names a schedule file, or
/// none.
Compilation compile_archive(const std::string &archive, const Options &options, PipelineStep last = PipelineStep::assemble);
/// The same for a program in memory.
Compilation compile_program(Program program, const Options &options, PipelineStep last = PipelineStep::assemble);

/// How the options ask for kernels to be grouped, and what the target can do.
FusionOptions fusion_options(const Options &options, const Target &target);

}  // namespace tilewright
