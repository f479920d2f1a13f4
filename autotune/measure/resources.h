// What a compiled kernel takes of a GPU.
#pragma once

#include "lowering/tile_ir/gpu_facts.h"
#include "runtime/compiled_kernel.h"

namespace tilewright {

/// Over all launches of a kernel the largest of each, but for the occupancy, which is the least; 0 on the CPU.
struct Resources {
    int registers = 0;     ///< a thread
    int spill_bytes = 0;   ///< a thread, stores and loads
    int shared_bytes = 0;  ///< a block
    int occupancy = 0;     ///< percent of a multiprocessor's threads that its blocks fill; 0 where one block does not fit
};
Resources resources_of(const CompiledKernel &kernel, const GpuFacts *facts);

/// Percent; `shared_bytes` static and dynamic.
int occupancy(const GpuFacts &facts, int threads, int registers, int shared_bytes);

}  // namespace tilewright
