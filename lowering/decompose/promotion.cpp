#include "lowering/decompose/promotion.h"

#include "dsl/error.h"

namespace tilewright {
namespace {

int category(DType type) {
    if (is_floating_point(type)) {
        return 2;
    }
    return type == DType::boolean ? 0 : 1;
}

void merge(std::optional<DType> &into, DType type) { into = into ? promote(*into, type) : type; }

/// c10's combine_categories: the lower one counts only where its category is above the higher one's.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher || !lower) {
        return higher ? higher : lower;
    }
    if (category(*higher) == 2) {
        return higher;
    }
    if (*higher == DType::boolean || category(*lower) == 2) {
        return promote(*higher, *lower);
    }
    return higher;
}

}  // namespace

DType result_type(const std::vector<Operand> &operands) {
    std::optional<DType> with_dims, without_dims, numbers;
    for (const Operand &operand : operands) {
        if (const Node *node = operand.node()) {
            merge(rank_of(node) > 0 ? with_dims : without_dims, dtype_of(node));
        } else if (std::holds_alternative<bool>(operand.number())) {
            merge(numbers, DType::boolean);
        } else {
            merge(numbers, std::holds_alternative<double>(operand.number()) ? DType::float32 : DType::int64);
        }
    }
    std::optional<DType> type = combine(with_dims, combine(without_dims, numbers));
    internal_assert(type.has_value(), "no operands to promote");
    return *type;
}

DType to_floating(DType type) { return is_floating_point(type) ? type : DType::float32; }

Node *as_tensor(Builder &b, const Operand &operand, DType type) {
    return operand.node() ? b.convert(operand.node(), type) : b.full({}, operand.number(), type);
}

Node *elementwise(Builder &b, std::vector<Operand> operands, Promotion promotion, const Elementwise &function) {
    DType type = result_type(operands);
    if (promotion == Promotion::floating) {
        type = to_floating(type);
    }
    const DType computed = compute_type(type);
    bool tensors = false;
    for (const Operand &operand : operands) {
        tensors = tensors || operand.node();
    }
    for (Operand &operand : operands) {
        if (Node *node = operand.node()) {
            // A tensor without dimensions is read in the type of the computation, as a number is; others are rounded to the common type.
            operand = b.convert(rank_of(node) > 0 ? b.convert(node, type) : node, computed);
        } else if (!tensors) {
            operand = b.full({}, operand.number(), computed);
        } else if (computed != type && promotion == Promotion::boolean) {
            operand = b.convert(b.full({}, operand.number(), type), computed);
        }
    }
    Node *result = function(b, operands);
    return promotion == Promotion::boolean ? result : b.convert(result, type);
}

}  // namespace tilewright
