// The values of a model's symbolic sizes that it is tuned for.
#pragma once

#include "dsl/graph/program.h"
#include "lowering/options.h"

namespace tilewright {

/// From the sizes of the tensors in `options.inputs` and from `options.sizes`, which win; a symbol that neither gives is 64, or the nearest
/// value of its range. UserError for a symbol that the model has not, a value outside its range, and inputs that do not fit the model.
SymbolValues tuning_sizes(const Program &program, const Options &options);

}  // namespace tilewright
