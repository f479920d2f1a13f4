// Loading a shipped model with its schedule from a warm cache, on the CPU target: the mark is 0.2 s.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "apps/api/tilewright.h"
#include "dsl/schedule/schedule.h"
#include "lowering/pipeline.h"
#include "lowering/schedule_file.h"

namespace {

/// The file that lies beside the model, or one with its default schedules.
std::string schedule_of(const std::string &model, const std::string &archive, const tilewright::Options &options) {
    const std::string shipped = "apps/models/" + model + ".cpu.schedule";
    if (std::filesystem::exists(shipped)) {
        return shipped;
    }
    const std::string path = std::filesystem::temp_directory_path() / ("benchmark_" + model + ".cpu.schedule");
    write_schedule(schedule_file_of(compile_archive(archive, options, tilewright::PipelineStep::schedule)), path);
    return path;
}

void load_warm(benchmark::State &state, const std::string &model) {
    tilewright::Options options;
    options.target = "cpu";
    const std::string archive = "apps/models/" + model + ".pt2";
    options.schedule = schedule_of(model, archive, options);
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

BENCHMARK_CAPTURE(load_warm, bert, std::string("bert"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, clip_vision, std::string("clip_vision"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, distilbert, std::string("distilbert"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, gpt2_dynamic, std::string("gpt2_dynamic"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, llama, std::string("llama"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, lstm, std::string("lstm"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, qwen3, std::string("qwen3"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, special, std::string("special"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, t5, std::string("t5"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, unet, std::string("unet"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_warm, whisper_enc, std::string("whisper_enc"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_small, lstm, std::string("lstm"))->Unit(benchmark::kMicrosecond);
