// Kernels that a library computes: `dot.engine("cublaslt")` for a product, `convolution.engine("cudnn")` for a convolution or attention;
// `engine("cublaslt:3")` for the third way that the library proposes.
#pragma once

#include <string>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "runtime/compiled_kernel.h"

namespace tilewright {

enum class EngineLibrary { cublaslt, cudnn };
inline constexpr EngineLibrary engine_libraries[] = {EngineLibrary::cublaslt, EngineLibrary::cudnn};
std::string name(EngineLibrary library);  ///< as schedules and --engines write it

/// Whether the library computes the whole kernel; the reason where it does not.
bool computes(EngineLibrary library, const Kernel &kernel, const GpuFacts &facts, std::string *why_not = nullptr);

/// The kernel as a call of the library by the n-th way that it proposes, from 1; the library computes it.
Directives engine_schedule(EngineLibrary library, const Kernel &kernel, int proposal = 1);

/// The engine that the directives name, or empty.
const Directive *find_engine(const Directives &directives);

/// The kernel as a call of the engine. UserError for an engine that is none of these and for a kernel that it does not compute.
CompiledKernel compile_engine(const Kernel &kernel, const Directive &engine, const GpuFacts &facts);

}  // namespace tilewright
