// The recorded cases of operators (tests/data/operators), run on a target and held against PyTorch's values.
#pragma once

#include <string>
#include <vector>

namespace tilewright::tests {

/// The families, in alphabetical order: all of them, or the one that TILEWRIGHT_TEST_OPERATORS names.
std::vector<std::string> operator_families();

/// Loads the archive, runs it on the family's inputs and checks each output.
void check_recorded_operators(const std::string &family, const std::string &archive, const std::string &target);

}  // namespace tilewright::tests
