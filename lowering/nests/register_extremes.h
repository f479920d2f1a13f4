// Extreme values with their places, of the terms that one thread holds in registers.
#pragma once

#include <optional>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Where terms come in the order of their places, a tie keeps what is held and nobody compares places, and these are 32 bits wide. Result:
/// all that was held, as one term of the fold; empty where that is not so.
std::optional<std::vector<Halide::Expr>> fold_extremes(NestWork &work, const Member &member, Combiner combiner,
                                                       const std::vector<Halide::Expr> &terms, const std::set<std::string> &held);

}  // namespace tilewright
