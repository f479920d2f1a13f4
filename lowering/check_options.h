// Refuses options that mean nothing, whoever gave them: the command, the library or Python.
#pragma once

#include "lowering/options.h"

namespace tilewright {

/// UserError that names the option as the command does.
void check_options(const Options &options);

}  // namespace tilewright
