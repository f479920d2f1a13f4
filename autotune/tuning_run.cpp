#include "autotune/tuning_run.h"

#include <limits>
#include <thread>

#include "autotune/inputs/tuning_sizes.h"
#include "dsl/error.h"
#include "lowering/cuda/compile.h"
#include "runtime/cuda/driver.h"
#include "runtime/digest.h"
#include "runtime/plan_cache.h"

namespace tilewright {

/// Kernels for a GPU are timed on that GPU alone.
static std::string why_untimed_here(const Target &target) {
    std::string why;
    if (target.kind == TargetKind::cpu || !have_cuda_device(&why)) {
        return why;
    }
    const std::string &here = cuda_device().architecture;
    return here == target.device ? "" : fmt::format("the GPU here is {}, the target {}", here, target.device);
}

std::string text_hash(const std::string &text) { return Digest().add(text).hex().substr(0, 16); }

TuningRun::TuningRun(const std::string &archive, const Options &options, const std::vector<std::string> &child,
                     const std::atomic<bool> &stop, const TellProgress &tell)
    : archive(archive),
      options(options),
      stop(stop),
      tell(tell),
      compilation(compile_archive(archive, options, PipelineStep::schedule)),
      symbols(tuning_sizes(compilation.program, options)),
      records(options.records.empty() ? Records::standard_path() : options.records),
      child(child),
      jobs(options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      builders(static_cast<std::size_t>(jobs)),
      runners{compilation.target, symbols, options.inputs, this->child, folder, builders} {
    if (compilation.target.kind == TargetKind::cuda && compilation.target.device != emulated_architecture) {
        compilers = std::make_unique<CompilingChildren>(child, jobs);
        runners.compilers = compilers.get();
    }
    std::string kernels;
    for (std::size_t k = 0; k < compilation.schedules.size(); ++k) {
        kernels += key_of(compilation.partition.kernels[k]) + print(compilation.schedules[k]);
    }
    model_key = fmt::format("model {} fusion={} {}", text_hash(kernels), options.fusion, machine());
    why_untimed = why_untimed_here(compilation.target);
    const std::optional<FinishedSearch> earlier = records.find_search(model_key);
    only_records = earlier && earlier->budget >= budget();
}

double TuningRun::budget() const { return options.budget > 0 ? options.budget : std::numeric_limits<double>::infinity(); }

TuningRun::Clock::time_point TuningRun::at(double seconds) const {
    return seconds >= 1e9 ? Clock::time_point::max()
                          : started + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string TuningRun::machine() const {
    const Target &target = compilation.target;
    return fmt::format("{} {} {} {} engines={}{}{}", target.to_string(), target.gpu ? target.gpu->name : target.device,
                       std::thread::hardware_concurrency(), build_id(), options.engines, options.strict ? " strict" : "",
                       options.deterministic ? " deterministic" : "");
}

std::string TuningRun::key_of(const Kernel &kernel, const SymbolValues &sizes) const {
    std::string key = kernel.hash.to_string() + " " + to_string(extent_signature(kernel.algorithm));
    for (const auto &[symbol, range] : kernel.algorithm.symbols) {
        key += fmt::format(" {}={}", symbol, sizes.at(symbol));
    }
    return key + " " + machine();
}

}  // namespace tilewright
