// Moves reshapes below pointwise stages, so that a stage runs over the space of the product (or rows) that it follows.
#pragma once

#include <map>
#include <string>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

struct MovedReshapes {
    Algorithm algorithm;
    std::map<std::string, std::string> original_names;  ///< of stages that run over another space now: "add_flat" is "add"
};

/// A pointwise stage that reads a computed value through a reshape is computed over that value's own space; what the stage was called
/// becomes a reshape of it, which costs nothing where it is read. Left alone is a stage that would then read another computed value at
/// computed places (a row's mean at the row of its element).
MovedReshapes move_reshapes(const Algorithm &algorithm);

}  // namespace tilewright
