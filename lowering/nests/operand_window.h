// Operands that neighbouring elements of a window share: what the elements and taps in registers read together, each place once.
#pragma once

#include <optional>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// An operand that depends on an unrolled loop of the value and on one of the terms through a * element + b * tap alone is loaded for each
/// value of that sum, into registers of its own. Empty where `value` is no such operand.
std::optional<Halide::Expr> window_operand(NestWork &work, const Stage &stage, const std::set<std::string> &axes,
                                           const Halide::Expr &value);

}  // namespace tilewright
