// Halide expressions as C++: types, literals and operators. Reads of buffers and variables are the caller's.
#pragma once

#include <Halide.h>
#include <functional>
#include <string>

#include "lowering/passes/index_math.h"

namespace tilewright {

/// "float", "tw::bfloat16", "tw::int64", …
std::string cuda_type(Halide::Type type);
/// A literal that has exactly this type.
std::string cuda_literal(const Halide::Expr &constant);

/// The operator of `e` applied to the texts of its operands, in parentheses where it is an infix operator. `e` is no Variable, no read
/// and no checked_index.
std::string cuda_operation(const Halide::Expr &e, const std::vector<std::string> &operands, const VariableRanges &ranges);
/// Operands in the order in which cuda_operation() takes their texts.
std::vector<Halide::Expr> operands_of(const Halide::Expr &e);
/// Without a pair of parentheses around the whole.
std::string without_parentheses(const std::string &text);

}  // namespace tilewright
