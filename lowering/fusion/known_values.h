// Replaces values that are the same at every place, whatever the inputs hold, by constants.
#pragma once

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Integers and booleans that are made of positions and constants alone are computed where they are the same at every place, and what
/// reads them is simplified: of a mask that asks whether two positions belong to one sequence, and which comes first, only the order
/// stays where there is one sequence.
Algorithm fold_known_values(const Algorithm &algorithm);

}  // namespace tilewright
