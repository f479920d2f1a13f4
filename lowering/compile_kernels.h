// Kernels and their schedules become code, on either target, several at once.
#pragma once

#include <span>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/target.h"
#include "runtime/compiled_kernel.h"

namespace tilewright {

/// One variant. UserError "file:line:column: cause; repair" for directives that do not fit the kernel.
CompiledKernel compile_kernel(const Kernel &kernel, const Directives &directives, const Target &target);

/// All variants of a schedule, as steps that run for their sizes. A variant that the kernel's constant extents rule out is left out.
CompiledKernel compile_kernel(const Kernel &kernel, const KernelSchedule &schedule, const Target &target);

/// `schedules` has one entry for each kernel. `jobs` kernels at once; 0: as many as the machine has cores. The first error of any is
/// thrown.
std::vector<CompiledKernel> compile_kernels(std::span<const Kernel> kernels, std::span<const KernelSchedule> schedules,
                                            const Target &target, int jobs);

}  // namespace tilewright
