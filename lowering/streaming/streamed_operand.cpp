#include "lowering/streaming/streamed_operand.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

using Halide::Expr;

namespace {

constexpr int alignment = 16;  // bytes: of addresses and strides that the copy unit takes

bool is_constant_place(const TensorMeta &meta, int dimension) {
    return meta.sizes[dimension] == Extent(1) || meta.strides[dimension] == Extent(0);
}

}  // namespace

std::optional<StreamedOperand> streamed_operand(const Algorithm &algorithm, const Halide::Internal::Call *read, const std::string &inner,
                                                const std::string &outer) {
    StreamedOperand operand;
    operand.indices = read->args;
    for (std::size_t i = 0; i < algorithm.inputs.size(); ++i) {
        operand.input = algorithm.inputs[i].name() == read->name ? static_cast<int>(i) : operand.input;
    }
    if (operand.input < 0) {
        return std::nullopt;
    }
    const TensorMeta &meta = algorithm.inputs[operand.input].meta;
    const int bytes = read->type.bytes();
    const auto is_aligned = [&](const Extent &elements) { return mod(elements * Extent(bytes), alignment) == Extent(0); };
    for (int i = 0; i < static_cast<int>(operand.indices.size()); ++i) {
        const std::string name = as_variable(operand.indices[i]);
        if (name == inner && operand.inner < 0) {
            operand.inner = i;
        } else if (!outer.empty() && name == outer && operand.outer < 0) {
            operand.outer = i;
        } else if (mentions(operand.indices[i], inner) || (!outer.empty() && mentions(operand.indices[i], outer))) {
            return std::nullopt;
        }
        if (name != inner && !is_constant_place(meta, i) && !is_aligned(meta.strides[i])) {
            return std::nullopt;
        }
    }
    const std::size_t dimensions = operand.inner < 0 ? 0 : copied_dimensions(algorithm, operand).size();
    if (dimensions < 2 || dimensions > 5 || !(meta.strides[operand.inner] == Extent(1)) || !is_aligned(meta.offset)) {
        return std::nullopt;
    }
    return operand;
}

std::vector<int> copied_dimensions(const Algorithm &algorithm, const StreamedOperand &operand) {
    const TensorMeta &meta = algorithm.inputs[operand.input].meta;
    std::vector<int> result{operand.inner};
    if (operand.outer >= 0) {
        result.push_back(operand.outer);
    }
    for (int i = 0; i < static_cast<int>(operand.indices.size()); ++i) {
        if (i != operand.inner && i != operand.outer && !is_constant_place(meta, i)) {
            result.push_back(i);
        }
    }
    return result;
}

}  // namespace tilewright
