// The search without a machine to measure on, and what a launch of a plan costs beside its kernels.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "apps/api/tilewright.h"
#include "autotune/search/search.h"
#include "autotune/search/space.h"
#include "dsl/error.h"
#include "runtime/cuda/driver.h"
#include "runtime/host_memory.h"

namespace {

using namespace tilewright;

/// Candidates cost nothing to build; the time of each follows from its text.
class InstantRunner final : public CandidateRunner {
public:
    std::future<Candidate> build(Directives directives) override {
        std::promise<Candidate> built;
        built.set_value({std::move(directives), {}, "plan"});
        return built.get_future();
    }
    std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) override {
        std::vector<std::vector<double>> seconds;
        for (const Candidate &candidate : candidates) {
            seconds.emplace_back(rounds, 1e-6 * static_cast<double>(1 + std::hash<std::string>()(print(candidate.directives)) % 1000));
        }
        return seconds;
    }
};

void search_without_machine(benchmark::State &state) {
    const Directives start =
        parse_directives("y.split(d0, block, thread, 256).split(block, grid, step, 4).gpu_blocks(grid).gpu_threads(thread)", "benchmark");
    const std::string path = (std::filesystem::temp_directory_path() / "tilewright_benchmark_records.sqlite").string();
    int candidates = 0;
    for (auto _ : state) {
        std::filesystem::remove(path);
        Records records(path);
        InstantRunner runner;
        candidates = search_kernel({start}, runner, records, "kernel", {}).candidates;
    }
    std::filesystem::remove(path);
    state.counters["candidates"] = candidates;
}

/// One run of a model of several small kernels on the caller's memory: what submitting it costs, on a GPU where one answers.
void launch_plan(benchmark::State &state, const std::string &model) {
    Options options;
    options.target = have_cuda_device() ? "cuda" : "cpu";
    const Model loaded = Model::load("apps/models/" + model + ".pt2", options);
    const std::vector<HostTensor> inputs = draw_inputs(loaded.plan(), {});
    if (options.target == "cuda") {
        for (auto _ : state) {
            benchmark::DoNotOptimize(loaded.run(inputs));
        }
        return;
    }
    std::vector<Tensor> tensors;
    for (const HostTensor &input : inputs) {
        tensors.push_back(to_tensor(input));
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(loaded.executor().run(tensors));
    }
}

}  // namespace

BENCHMARK(search_without_machine)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(launch_plan, special, std::string("special"))->Unit(benchmark::kMicrosecond);
