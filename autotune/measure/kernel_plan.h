// A plan of one kernel alone, with constant sizes and its tensors as inputs and outputs: what the measuring child loads.
#pragma once

#include "lowering/fixed_inputs.h"
#include "lowering/fusion/kernel.h"
#include "lowering/target.h"
#include "runtime/compiled_kernel.h"

namespace tilewright {

/// Tensors that calls see as views stand there with the view's sizes and strides, from their element 0. Fixed inputs are weights
/// without a value.
Plan kernel_plan(const Kernel &kernel, const CompiledKernel &compiled, const FixedInputs &fixed, const SymbolValues &symbols,
                 const Target &target);

/// Replaces the plan's symbols by values everywhere.
void bind_symbols(Plan &plan, const SymbolValues &symbols);

}  // namespace tilewright
