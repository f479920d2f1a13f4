// Loading a shipped model with its schedule from a warm cache, on the CPU target: the mark is 0.2 s.
#include <benchmark/benchmark.h>

#include "apps/api/tilewright.h"

namespace {

void load_warm(benchmark::State &state, const std::string &model) {
    tilewright::Options options;
    options.target = "cpu";
    const std::string archive = "apps/models/" + model + ".pt2";
    tilewright::Model::load(archive, options);  // fills the cache
    for (auto _ : state) {
        const tilewright::Model loaded = tilewright::Model::load(archive, options);
        benchmark::DoNotOptimize(loaded.plan().steps.data());
        if (!loaded.from_cache()) {
            state.SkipWithError("not from the cache");
        }
    }
}

/// One run of a small model: what the runtime adds to the kernels.
void run_small(benchmark::State &state, const std::string &model) {
    tilewright::Options options;
    options.target = "cpu";
    const tilewright::Model loaded = tilewright::Model::load("apps/models/" + model + ".pt2", options);
    const std::vector<tilewright::HostTensor> inputs = tilewright::draw_inputs(loaded.plan(), {});
    for (auto _ : state) {
        benchmark::DoNotOptimize(loaded.run(inputs));
    }
}

}  // namespace

BENCHMARK_CAPTURE(load_warm, qwen3, std::string("qwen3"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, unet, std::string("unet"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_small, lstm, std::string("lstm"))->Unit(benchmark::kMicrosecond);
