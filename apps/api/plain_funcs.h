// Brings Funcs as users write them into the form that algorithms have: names as written, without the numbers by which Halide keeps them
// apart, and reads of tensors in place of the Funcs that ImageParams wrap around themselves.
#pragma once

#include <map>
#include <string>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// "y" for "y$3".
std::string plain_name(const std::string &halide_name);

/// The same algorithm over new Funcs. UserError where two stages have one plain name, or a stage has more than one update.
Algorithm with_plain_funcs(const Algorithm &algorithm);

}  // namespace tilewright
