// The compiler's own steps, for shipped models: import, decomposition, translation, grouping, hashing, lowering and printing of CUDA.
#include <benchmark/benchmark.h>

#include "dsl/algorithm/hash.h"
#include "dsl/capture/archive.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/cuda_space.h"
#include "lowering/pipeline.h"

namespace {

using namespace tilewright;

std::string path_of(const std::string &model) { return "apps/models/" + model + ".pt2"; }

Compilation compiled_to(const std::string &model, PipelineStep last) {
    Options options;
    options.target = "cuda";
    options.architecture = "sm_90a";
    return compile_archive(path_of(model), options, last);
}

void import_archive(benchmark::State &state, const std::string &model) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(read_archive(path_of(model)));
    }
}

void up_to(benchmark::State &state, const std::string &model, PipelineStep last) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(compiled_to(model, last));
    }
}

void hash_kernels(benchmark::State &state, const std::string &model) {
    const Compilation c = compiled_to(model, PipelineStep::partition);
    for (auto _ : state) {
        for (const Kernel &kernel : c.partition.kernels) {
            benchmark::DoNotOptimize(structural_hash(kernel.algorithm));
        }
    }
}

void lower_kernels(benchmark::State &state, const std::string &model) {
    const Compilation c = compiled_to(model, PipelineStep::schedule);
    for (auto _ : state) {
        for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
            benchmark::DoNotOptimize(lower_to_tiles(c.partition.kernels[k], c.schedules[k].variants[0].directives, *c.target.gpu));
        }
    }
}

void emit_kernels(benchmark::State &state, const std::string &model) {
    const Compilation c = compiled_to(model, PipelineStep::schedule);
    std::vector<tile::Program> tiles;
    for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
        tiles.push_back(lower_to_tiles(c.partition.kernels[k], c.schedules[k].variants[0].directives, *c.target.gpu));
    }
    for (auto _ : state) {
        for (const tile::Program &program : tiles) {
            benchmark::DoNotOptimize(emit_cuda(program));
        }
    }
}

void propose_candidates(benchmark::State &state, const std::string &model) {
    const Compilation c = compiled_to(model, PipelineStep::partition);
    for (auto _ : state) {
        for (const Kernel &kernel : c.partition.kernels) {
            benchmark::DoNotOptimize(cuda_candidates(kernel, *c.target.gpu));
        }
    }
}

}  // namespace

BENCHMARK_CAPTURE(import_archive, qwen3, std::string("qwen3"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(up_to, decompose_qwen3, std::string("qwen3"), PipelineStep::decompose)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(up_to, translate_qwen3, std::string("qwen3"), PipelineStep::translate)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(up_to, partition_qwen3, std::string("qwen3"), PipelineStep::partition)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(hash_kernels, qwen3, std::string("qwen3"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_kernels, bert, std::string("bert"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(emit_kernels, bert, std::string("bert"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(propose_candidates, bert, std::string("bert"))->Unit(benchmark::kMillisecond);
