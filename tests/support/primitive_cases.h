// PyTorch's values of the scalar primitives over edge inputs, as every target's test reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/graph/dtype.h"

namespace tilewright::tests {

/// One primitive on one type: columns of bit patterns, one row an input.
struct PrimitiveCase {
    std::string op;
    DType type, result_type;
    int ulps = 0;
    std::vector<std::vector<std::uint64_t>> columns;  ///< inputs, then the value
};

/// From tests/data/math_primitives.txt.
std::vector<PrimitiveCase> read_primitive_cases();

}  // namespace tilewright::tests
