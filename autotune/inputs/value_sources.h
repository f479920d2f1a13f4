// Where the inputs of one kernel get their values from when it is measured alone.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph/program.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// For each input of the kernel, as TimingRequest::inputs: with `have_values` the name "in0", "in1", … of the model's input that `call`
/// gives it, else how many values an integer may have (index_bounds.h), 0 where nothing bounds it.
std::vector<std::string> value_sources(const Program &program, const Kernel &kernel, const KernelCall &call, const SymbolValues &symbols,
                                       bool have_values);

}  // namespace tilewright
