// A kernel and its schedule become CUDA C++ and the launches that run it.
#pragma once

#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "lowering/tile_ir/tile_ir.h"
#include "runtime/plan.h"

namespace tilewright {

/// One CUDA source and its launches in order. BufferArgument::buffer counts the kernel's inputs, then its outputs; LaunchStep::code is 0.
/// Equal slots of ScratchArgument are one piece of memory that lives from the first launch to the last.
struct CudaKernelCode {
    std::string source;
    std::vector<LaunchStep> launches;
};

/// Kernel + directives -> tile IR, every pass run. UserError "file:line:column: cause; repair" for a directive that is illegal here.
tile::Program lower_to_tiles(const Kernel &kernel, const Directives &directives, const GpuFacts &facts);

/// Prints a tile program as CUDA C++. The source includes "tilewright_device.h".
CudaKernelCode emit_cuda(const tile::Program &program);

/// lower_to_tiles, then emit_cuda.
CudaKernelCode lower_cuda(const Kernel &kernel, const Directives &directives, const GpuFacts &facts);

/// Whether that schedule would put the kernel's only product, or products side by side, on the matrix unit, or they are too small to
/// matter.
bool is_multiplied_well(const Kernel &kernel, const GpuFacts &facts);
/// Whether the kernel is a product whose rows are reduced by the block that computes them, and its tiles fill the GPU.
bool finishes_rows_well(const Kernel &kernel, const GpuFacts &facts);

}  // namespace tilewright
