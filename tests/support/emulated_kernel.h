// Runs a kernel's emitted CUDA on the host emulation, and holds it against the CPU target.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/kernel.h"

namespace tilewright::tests {

/// Lowers, emits, compiles for the host and runs. Outputs have the kernel's strides and are filled with 0xff beforehand. UserError with
/// site, index and size where an index is out of range; EmulationFault for what a GPU would punish.
std::vector<HostTensor> run_emulated(const Kernel &kernel, const Directives &directives, const std::vector<HostTensor> &inputs,
                                     const SymbolValues &symbols = {}, const GpuFacts &facts = gpu_facts("sm_90a"));

/// The same for code that was lowered, and perhaps changed, before.
std::vector<HostTensor> run_emulated(const Kernel &kernel, const CudaKernelCode &code, const std::vector<HostTensor> &inputs,
                                     const SymbolValues &symbols = {});

/// The kernels of the program that `lines` make (as for program_from), fusing what may be fused.
std::vector<Kernel> kernels_from(const char *lines);

/// Inputs drawn for a kernel: normal numbers, integers 0 and 1.
std::vector<HostTensor> random_inputs(const Kernel &kernel, const SymbolValues &symbols, unsigned seed);

/// The first element in which two results differ by more than `tolerance` (relative to 1 + |expected|; integers must be equal), as
/// "output 0 [2, 3]: 1.5, expected 1.25"; empty where none does. NaN equals NaN.
std::string first_difference(const std::vector<HostTensor> &actual, const std::vector<HostTensor> &expected, double tolerance);

/// Runs each of kernels_from(lines) on random inputs, with the default CUDA schedule and without any directives. Empty where all agree with
/// the CPU target, else the first difference with the kernel's name.
std::string check_emulated(const char *lines, const SymbolValues &symbols = {}, double tolerance = 2e-5);

/// Runs the first of kernels_from(lines) that `schedule` has directives for; empty where the emulation agrees with the CPU target.
std::string check_scheduled(const std::string &lines, const std::function<std::optional<Directives>(const Kernel &)> &schedule,
                            const GpuFacts &facts, double tolerance);

}  // namespace tilewright::tests
