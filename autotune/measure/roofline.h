// The least time that a kernel can take on a GPU: what it must move and multiply, at the machine's rates.
#pragma once

#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

struct Roofline {
    double bytes = 0;         ///< every input that is read and every output, once
    double matrix_flops = 0;  ///< of products of 16-bit operands
    double float_flops = 0;   ///< of other products and windows
    double seconds = 0;       ///< the longest of the three
};
Roofline roofline(const Algorithm &algorithm, const SymbolValues &symbols, const GpuFacts &facts);

}  // namespace tilewright
