// Where along one axis a condition can hold: interval analysis of masks, so that blocks that are wholly masked are never visited.
#pragma once

#include <Halide.h>
#include <map>
#include <string>

namespace tilewright {

/// Smallest and largest value of a variable as expressions over what is constant there.
struct ExprInterval {
    Halide::Expr min, max;
};

/// Both ends included, Int(64); an undefined end is unbounded. Outside of it the condition is false.
struct PossibleRange {
    Halide::Expr first, last;
    bool is_bounded() const { return first.defined() || last.defined(); }
};

/// `others` are the variables beside `along` that vary; all else in the condition is constant. What cannot be analysed bounds nothing.
PossibleRange possible_range(const Halide::Expr &condition, const std::string &along, const std::map<std::string, ExprInterval> &others);

}  // namespace tilewright
