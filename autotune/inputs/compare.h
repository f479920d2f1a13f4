// Compares outputs with recorded ones, as `run --check` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/tensor.h"

namespace tilewright {

/// How far a value may be from the recorded one: `tolerance` times the largest recorded magnitude.
struct Comparison {
    double largest_error = 0;             ///< relative to the largest recorded magnitude
    std::optional<std::string> mismatch;  ///< "[1, 3]: expected 2.5, got 2.25"; empty where the tensors agree
};

/// Types and sizes equal, NaN and infinities at the same places, integers and booleans equal, floating-point values within
/// default_tolerance() of their type.
Comparison compare(const HostTensor &expected, const HostTensor &actual);

/// Relative to the largest magnitude of the tensor: 2e-5 for float32, and a few rounding steps of the narrower types.
double default_tolerance(DType type);

/// An element as a double; complex types are a UserError. `element` points into host memory.
double read_element(DType type, const std::byte *element);
/// Rounds to nearest even where the type is narrower.
void write_element(DType type, std::byte *element, double value);

}  // namespace tilewright
