// Arithmetic on index expressions: ranges, simplification that never looks inside a read, and substitution that keeps sharing.
#pragma once

#include <Halide.h>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "dsl/graph/extent.h"

namespace tilewright {

using Substitution = std::map<std::string, Halide::Expr>;
/// Smallest and largest value of each variable, both included.
using VariableRanges = std::map<std::string, SymbolRange>;

/// Replaces variables; shared nodes stay shared.
Halide::Expr substitute_variables(const Halide::Expr &e, const Substitution &values);
/// Halide's simplifier over integers, with Calls and floating-point parts held opaque.
Halide::Expr simplify_index(const Halide::Expr &e, const VariableRanges &ranges);
bool equal_indices(const Halide::Expr &a, const Halide::Expr &b, const VariableRanges &ranges);
/// a - b with equal parts cancelled.
Halide::Expr difference_of(const Halide::Expr &a, const Halide::Expr &b, const VariableRanges &ranges);
/// Quotients and remainders of one place that were taken apart and are put together again, as (x / 8) * 8 + x % 8, are that place.
Halide::Expr join_remainders(const Halide::Expr &e, const VariableRanges &ranges);
/// A value with its indices in one form, so that equal values are equal expressions.
Halide::Expr canonical_indices(const Halide::Expr &e, const VariableRanges &ranges);
/// Interval arithmetic; empty where a part is unknown.
std::optional<SymbolRange> range_of(const Halide::Expr &e, const VariableRanges &ranges);
/// The variable that `e` is, or "".
std::string as_variable(const Halide::Expr &e);
/// Whether e(variable + 1) == e(variable) + 1 while variable goes from 0 to `extent` - 1.
bool steps_by_one(const Halide::Expr &e, const std::string &variable, std::int64_t extent, const VariableRanges &ranges);
/// A number that divides `e` (0 for e == 0), from constants and the multiples that the variables are known to be.
bool is_multiple_of(const Halide::Expr &e, std::int64_t unit, const std::map<std::string, std::int64_t> &multiples);
std::int64_t divisor_of(const Halide::Expr &e, const std::map<std::string, std::int64_t> &multiples);

}  // namespace tilewright
