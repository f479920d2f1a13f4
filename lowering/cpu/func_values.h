// Names, places and values of the Funcs that a kernel is made of.
#pragma once

#include <string>
#include <vector>

#include <Halide.h>

namespace tilewright {

/// The Func's name for a stage's. Halide's names hold no parentheses. The suffix keeps a stage "exp" apart from a call of exp: Halide 21
/// inlines by name alone.
std::string func_name(std::string stage);

/// A variable for each of the function's arguments.
std::vector<Halide::Expr> places_of(const Halide::Internal::Function &function);
/// The elements of the function's tuple at these places.
std::vector<Halide::Expr> values_at(const Halide::Internal::Function &function, const std::vector<Halide::Expr> &places);

}  // namespace tilewright
