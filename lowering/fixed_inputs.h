// Which tensors are the same in every run: weights and what is computed from them alone, at load.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/graph/program.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// Names of the tensors that a run may change: user inputs, state that is written back, and all that depends on them or on symbolic sizes.
std::set<std::string> varying_tensors(const Program &program, const Partition &partition);

/// Of one kernel, by input: whether it is the same in every run. Empty where nothing is known.
using FixedInputs = std::vector<bool>;

/// For each kernel; an input is fixed where it is so at every call.
std::vector<FixedInputs> fixed_inputs(const Program &program, const Partition &partition);

}  // namespace tilewright
