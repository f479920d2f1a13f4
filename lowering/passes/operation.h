// One scalar operation by its meaning: Halide's nodes, its strict calls and our own primitives under one name.
#pragma once

#include <Halide.h>
#include <string>
#include <vector>

namespace tilewright {

/// "add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "select", "min", "max", "neg", "exp", "convert" and
/// so on; empty for leaves and reads. "div" of integers rounds down.
struct Operation {
    std::string name;
    std::vector<Halide::Expr> operands;
};
Operation operation_of(const Halide::Expr &e);

/// Whether `op`, the operation of `e`, converts one floating-point type to another.
bool is_float_conversion(const Halide::Expr &e, const Operation &op);
bool is_negative_infinity(const Halide::Expr &e);
/// The value of a floating-point constant, converted or not; NaN where `e` is none.
double float_constant(const Halide::Expr &e);
/// A constant whose bits are all 0.
bool is_positive_zero(const Halide::Expr &e);

}  // namespace tilewright
