// Joins compiled kernels to a plan: gives every tensor a buffer, every call its steps, every output its place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dsl/graph/program.h"
#include "lowering/fusion/kernel.h"
#include "runtime/compiled_kernel.h"
#include "runtime/plan.h"

namespace tilewright {

/// What the tensors of an algorithm are to its caller. `metas` holds one entry for each of `inputs`; those of inputs that are no tensors
/// are not read. `outputs` are in the order of the algorithm's.
struct Signature {
    std::vector<InputSpec> inputs;
    std::vector<TensorMeta> metas;
    std::vector<OutputSpec> outputs;
    SymbolRanges symbols;
};
/// UserError for an input or output that is neither tensor nor constant.
Signature signature_of(const Program &program);

/// `compiled` holds one entry for each of the partition's kernels. Intermediates live where their lifetimes allow (runtime/memory_plan.h).
Plan assemble_plan(TargetKind target, const std::string &device, const Signature &signature, const Algorithm &algorithm,
                   const std::vector<std::string> &index_sites, const Partition &partition, std::span<const CompiledKernel> compiled);

/// A plan that runs one kernel alone: its tensors are the plan's inputs and outputs, in their order. Inputs that are fixed
/// (lowering/fixed_inputs.h) are weights that have no value yet.
Plan plan_of_kernel(TargetKind target, const std::string &device, const Kernel &kernel, const CompiledKernel &compiled,
                    const std::vector<bool> &fixed_inputs = {});

}  // namespace tilewright
