// Kernels that are one matrix product with a small epilogue, as cuBLASLt computes them: `dot.engine("cublaslt")`, or
// `engine("cublaslt:3")` for the third way that the library proposes.
#pragma once

#include <optional>
#include <string>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "runtime/compiled_kernel.h"
#include "runtime/plan.h"

namespace tilewright {

/// The product, batched or not, that the whole kernel is: operands of one type, converted at most, each contiguous along one of its two
/// axes; then at most a constant factor, a bias along the columns, a ReLU and a conversion. Buffers count the kernel's inputs, then its output. Else empty,
/// with the reason in words.
std::optional<MatmulEngineStep> match_matmul(const Kernel &kernel, std::string *why_not = nullptr);

/// Whether the whole kernel is such a product of float32 or float64 values, with enough to multiply for a library's call.
bool is_large_float_product(const Kernel &kernel);

/// The kernel as a call of cuBLASLt by the n-th way that it proposes, from 1; the kernel holds a product.
Directives engine_schedule(const Kernel &kernel, int proposal = 1);

/// The engine that the directives name, or empty.
const Directive *find_engine(const Directives &directives);

/// The kernel as a call of the engine. UserError for another engine than cublaslt and for a kernel that is no such product.
CompiledKernel compile_engine(const Kernel &kernel, const Directive &engine);

}  // namespace tilewright
