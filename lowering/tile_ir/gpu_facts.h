// What the lowering and the search know of a GPU: a table of facts, each from NVIDIA's documents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

struct GpuFacts {
    std::string name;          ///< as the driver reports it
    std::string architecture;  ///< "sm_90a", what NVRTC and ptxas take
    int multiprocessors = 0;
    int threads_per_multiprocessor = 0;
    int blocks_per_multiprocessor = 0;
    int registers_per_multiprocessor = 0;  ///< 32-bit
    int registers_per_thread = 255;
    int register_allocation_unit = 256;          ///< registers are given to a warp in multiples of this
    std::int64_t shared_per_multiprocessor = 0;  ///< bytes
    std::int64_t shared_per_block = 0;           ///< bytes, with opt-in
    std::int64_t shared_reserved_per_block = 1024;
    std::int64_t l2_bytes = 0;
    double memory_bandwidth = 0;  ///< bytes a second, what a plain copy reaches (reads + writes)
    double half_flops = 0;        ///< dense bf16/fp16 on the matrix unit, a second
    double float_flops = 0;       ///< fp32 multiply-adds outside the matrix unit, times 2, a second
    int largest_cluster = 1;      ///< blocks; portable limit
    bool bulk_copy = false;       ///< TMA and mbarriers
    bool warpgroup_multiply = false;
};

/// By the driver's name or by architecture; the H200 where neither is known.
const GpuFacts &gpu_facts(std::string_view name_or_architecture);
const std::vector<GpuFacts> &known_gpus();

}  // namespace tilewright
