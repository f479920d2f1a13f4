// Terms that one thread holds in registers, folded together before they join the others'.
#pragma once

#include <optional>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Moments: the mean of what is held, then the squares around it (two multiply-adds a term, no division). Log-sum-exp: the maximum,
/// then one exponential a term. Result: all that was held, as one term of the fold. Empty for other combiners and for terms that are
/// partial results themselves.
std::optional<std::vector<Halide::Expr>> fold_registers(NestWork &work, const Member &member, Combiner combiner,
                                                        const std::vector<Halide::Expr> &terms, const std::set<std::string> &held);

}  // namespace tilewright
