// Computes an algorithm element by element, without a schedule and without generating code: the plainest meaning that it has. Every read is
// checked against its tensor, also in the branch of a select that is not taken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/graph/tensor.h"
#include "lowering/fusion/kernel.h"

namespace tilewright::tests {

struct ReferenceResult {
    std::map<std::string, HostTensor> outputs;  ///< contiguous, by the output's name
    struct IndexError {
        int site = 0;
        std::int64_t index = 0, size = 0;
    };
    std::optional<IndexError> index_error;  ///< the first one
};

/// Inputs by name, as they are strided. Throws std::out_of_range for a read outside a tensor.
ReferenceResult evaluate(const Algorithm &algorithm, const std::map<std::string, HostTensor> &inputs, const SymbolValues &symbols = {});

/// The same for a partition of the algorithm: kernel by kernel, in the order of the calls, through memory that is laid out as the kernels'
/// inputs and outputs say.
ReferenceResult evaluate(const Partition &partition, const Algorithm &algorithm, const std::map<std::string, HostTensor> &inputs,
                         const SymbolValues &symbols = {});

/// A contiguous tensor of these values, converted to the type.
HostTensor tensor(DType type, std::vector<std::int64_t> sizes, const std::vector<double> &values);
/// Its elements in row-major order. The tensor is contiguous.
std::vector<double> values_of(const HostTensor &tensor);

}  // namespace tilewright::tests
