#include "lowering/pipeline.h"

#include <chrono>
#include <optional>
#include <spdlog/spdlog.h>

#include "dsl/capture/archive.h"
#include "lowering/choose_schedules.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/held_columns.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fixed_inputs.h"
#include "lowering/streaming/streaming_form.h"

namespace tilewright {
namespace {

/// Runs one step, logs its time.
template<typename Step> void timed(const char *name, Step &&step) {
    const auto start = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    spdlog::debug("{:<13} {:8.1f} ms", name, elapsed.count());
}

}  // namespace

Compilation compile_archive(const std::string &archive, const Options &options, PipelineStep last) {
    Program program;
    timed("import", [&] { program = read_archive(archive); });
    return compile_program(std::move(program), options, last);
}

Compilation compile_program(Program program, const Options &options, PipelineStep last) {
    Compilation c;
    c.target = choose_target(options);
    c.program = std::move(program);
    std::optional<ScheduleFile> file;
    if (!options.schedule.empty()) {
        file = read_schedule(options.schedule);
    }
    const auto step = [&](PipelineStep which, const char *name, auto &&run) {
        if (which <= last) {
            timed(name, run);
        }
    };
    using enum PipelineStep;
    step(functionalize, "functionalize", [&] { tilewright::functionalize(c.program); });
    step(decompose, "decompose", [&] { tilewright::decompose(c.program); });
    step(translate, "translate", [&] { c.translated = tilewright::translate(c.program); });
    step(partition, "partition", [&] {
        const FusionOptions fusion = fusion_options(options, c.target);
        c.partition = file ? partition_for(c.translated.algorithm, fusion, *file) : tilewright::partition(c.translated.algorithm, fusion);
    });
    step(schedule, "schedule", [&] {
        c.schedules = choose_schedules(c.partition, file ? &*file : nullptr, c.target, fixed_inputs(c.program, c.partition), options);
        require_allowed(c.schedules, options);
    });
    step(compile, "compile", [&] { c.kernels = compile_kernels(c.partition.kernels, c.schedules, c.target, options.jobs); });
    step(assemble, "assemble", [&] {
        c.plan = assemble_plan(c.target.kind, c.target.device, signature_of(c.program), c.translated.algorithm, c.translated.index_sites,
                               c.partition, c.kernels);
    });
    return c;
}

FusionOptions fusion_options(const Options &options, const Target &target) {
    FusionOptions fusion;
    fusion.mode = options.fusion == "max" ? FusionMode::max : options.fusion == "none" ? FusionMode::none : FusionMode::search;
    fusion.strict = options.strict;
    // Weights are rounded before they are divided by their sum where they stream: not step by step as eager does.
    if (target.kind == TargetKind::cuda && !options.strict) {
        fusion.streaming = true;
        fusion.can_stream = [gpu = target.gpu](const Algorithm &algorithm) { return match_streaming(algorithm, *gpu).has_value(); };
    }
    if (target.gpu && target.gpu->warpgroup_multiply) {
        fusion.multiplies = [gpu = target.gpu](const Algorithm &algorithm) {
            Kernel kernel;
            kernel.algorithm = algorithm;
            return is_multiplied_well(kernel, *gpu);
        };
        fusion.can_finish_rows = [gpu = target.gpu](const Algorithm &algorithm) {
            Kernel kernel;
            kernel.algorithm = algorithm;
            return finishes_rows_well(kernel, *gpu);
        };
    }
    fusion.mixed = fusion.split_columns = target.kind == TargetKind::cuda;
    fusion.longest_held_column = target.kind == TargetKind::cuda ? longest_held_column : 0;
    fusion.channels_innermost = target.gpu && target.gpu->warpgroup_multiply;
    return fusion;
}

}  // namespace tilewright
