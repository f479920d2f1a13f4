// Calls of core operators with the values that PyTorch computes, from tests/data/core_operators.txt.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/graph/program.h"

namespace tilewright::tests {

struct OperatorCase {
    std::string name;  ///< "reductions/sum_all"
    Program program;
    std::map<std::string, HostTensor> inputs;    ///< by placeholder
    std::map<std::string, HostTensor> expected;  ///< "out0", …
};

/// The cases of one family, in order. Throws std::runtime_error where the file has none.
std::vector<OperatorCase> operator_cases(std::string_view family);

/// Empty where the tensors agree: NaN with NaN, and otherwise within `tolerance` times the larger of 1 and the expected value (exactly for
/// integers). Else the first difference: index, expected, actual. Half types are given their last bit. With `signed_zeros`, the sign of a
/// zero counts.
std::string difference(const HostTensor &actual, const HostTensor &expected, double tolerance, bool signed_zeros = true);

}  // namespace tilewright::tests
