// Kernels of tests on the GPU: the emulated one, or the machine's own where TILEWRIGHT_TEST_GPU is set.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// From now on libcuda.so.1 is the emulated driver, unless TILEWRIGHT_TEST_GPU is set. Called before the first use of the GPU.
void use_test_gpu();

/// Whether the tests run on the machine's own GPU.
bool test_gpu_is_real();

/// Compiles `source` for the test GPU and runs one function of it: `inputs` and then `outputs` are its parameters, then `n`, a 32-bit
/// integer, and the error flag's address. Blocks of `threads`; the outputs' values are replaced.
void launch_on_test_gpu(const std::string &source, const std::string &function, int blocks, int threads,
                        const std::vector<HostTensor> &inputs, std::vector<HostTensor> &outputs, int n);

}  // namespace tilewright
