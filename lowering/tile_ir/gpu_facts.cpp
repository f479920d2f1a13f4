#include "lowering/tile_ir/gpu_facts.h"

#include <algorithm>

namespace tilewright {

// Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; data sheets of the boards.
// memory_bandwidth of the H200 is what a device-to-device copy reaches, measured; of the others nine tenths of the data sheet's.
const std::vector<GpuFacts> &known_gpus() {
    static const std::vector<GpuFacts> gpus = {
        {.name = "NVIDIA H200",
         .architecture = "sm_90a",
         .multiprocessors = 132,
         .threads_per_multiprocessor = 2048,
         .blocks_per_multiprocessor = 32,
         .registers_per_multiprocessor = 65536,
         .shared_per_multiprocessor = 233472,
         .shared_per_block = 232448,
         .l2_bytes = 60LL << 20,
         .memory_bandwidth = 4.1e12,
         .half_flops = 8.0e14,
         .float_flops = 6.7e13,
         .largest_cluster = 8,
         .bulk_copy = true,
         .warpgroup_multiply = true},
        {.name = "NVIDIA H100 80GB HBM3",
         .architecture = "sm_90a",
         .multiprocessors = 132,
         .threads_per_multiprocessor = 2048,
         .blocks_per_multiprocessor = 32,
         .registers_per_multiprocessor = 65536,
         .shared_per_multiprocessor = 233472,
         .shared_per_block = 232448,
         .l2_bytes = 50LL << 20,
         .memory_bandwidth = 3.0e12,
         .half_flops = 8.0e14,
         .float_flops = 6.7e13,
         .largest_cluster = 8,
         .bulk_copy = true,
         .warpgroup_multiply = true},
        {.name = "NVIDIA A100-SXM4-80GB",
         .architecture = "sm_80",
         .multiprocessors = 108,
         .threads_per_multiprocessor = 2048,
         .blocks_per_multiprocessor = 32,
         .registers_per_multiprocessor = 65536,
         .shared_per_multiprocessor = 167936,
         .shared_per_block = 166912,
         .l2_bytes = 40LL << 20,
         .memory_bandwidth = 1.8e12,
         .half_flops = 2.8e14,
         .float_flops = 1.95e13},
        {.name = "NVIDIA L4",
         .architecture = "sm_89",
         .multiprocessors = 58,
         .threads_per_multiprocessor = 1536,
         .blocks_per_multiprocessor = 24,
         .registers_per_multiprocessor = 65536,
         .shared_per_multiprocessor = 102400,
         .shared_per_block = 101376,
         .l2_bytes = 48LL << 20,
         .memory_bandwidth = 2.7e11,
         .half_flops = 1.1e14,
         .float_flops = 3.0e13},
    };
    return gpus;
}

const GpuFacts &gpu_facts(std::string_view key) {
    const auto &gpus = known_gpus();
    auto found = std::find_if(gpus.begin(), gpus.end(), [&](const GpuFacts &g) { return g.name == key; });
    if (found == gpus.end()) {
        found = std::find_if(gpus.begin(), gpus.end(), [&](const GpuFacts &g) { return g.architecture == key; });
    }
    return found == gpus.end() ? gpus.front() : *found;
}

}  // namespace tilewright
