// Every CUDA kernel of shipped models under its default schedule, run by the host emulation on random inputs, against the CPU target.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/pipeline.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;

namespace {

/// Small values of the model's symbols, inside their ranges.
SymbolValues small_sizes(const SymbolRanges &symbols) {
    SymbolValues values;
    for (const auto &[name, range] : symbols) {
        values[name] = std::clamp<std::int64_t>(5 + 3 * static_cast<std::int64_t>(values.size()), range.min, range.max);
    }
    return values;
}

void check_model(const std::string &model) {
    Options options;
    options.target = "cuda";
    options.architecture = "sm_90a";
    const Compilation compilation = compile_archive("apps/models/" + model + ".pt2", options, PipelineStep::partition);
    const SymbolValues sizes = small_sizes(compilation.translated.algorithm.symbols);
    for (const Kernel &kernel : compilation.partition.kernels) {
        CAPTURE(kernel.name);
        const std::vector<HostTensor> inputs = tests::random_inputs(kernel, sizes, 1);
        const std::vector<HostTensor> expected = tests::run_on_cpu(kernel, {}, inputs, sizes);
        const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
        CHECK(tests::first_difference(tests::run_emulated(kernel, directives, inputs, sizes), expected, 1e-4) == "");
    }
}

}  // namespace

TEST_CASE("distilbert") { check_model("distilbert"); }
TEST_CASE("gpt2 with symbolic sizes") { check_model("gpt2_dynamic"); }
TEST_CASE("lstm") { check_model("lstm"); }
TEST_CASE("sorts, scatters and scans") { check_model("special"); }
TEST_CASE("unet") { check_model("unet"); }
