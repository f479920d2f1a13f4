// Compiles a kernel under a schedule to machine code for this machine's CPU.
//
// The function has the kernel's name with its hash, and one argument after another in this order: a halide_buffer_t for each input (as
// many dimensions as the tensor has, outermost first, strides in elements), an int32 for each of the algorithm's symbols in the order of
// their names, a pointer to the plan's error flag where the kernel checks indices, and a halide_buffer_t for each output. It is called
// through the array of pointers to them (runtime/cpu/loader.h). Strides must be those of the kernel's tensors; nothing checks them.
#pragma once

#include <string>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "runtime/compiled_kernel.h"

namespace tilewright {

/// UserError where the directives do not fit the kernel, with their place; where Halide refuses them, with Halide's words.
/// Several threads may compile at once.
CompiledKernel compile_cpu(const Kernel &kernel, const Directives &directives);

/// The UserErrors of compile_cpu(), without code.
void check_cpu(const Kernel &kernel, const Directives &directives);

/// Halide's statement after lowering, for people.
std::string print_cpu_statement(const Kernel &kernel, const Directives &directives);

/// The instruction sets that code is compiled for: "x86-64-linux-avx512…". Code of another string is not loaded.
std::string cpu_features();

}  // namespace tilewright
