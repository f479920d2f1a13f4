// Reads the arguments of an ATen instruction by the names of its schema, with the schema's defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/decompose/builder.h"

namespace tilewright {

/// Missing or unusable arguments are UserErrors that name the node, the operator and the argument.
class Arguments {
public:
    /// `original` is the instruction as captured, whose inputs have the strides that PyTorch gave them; nullptr where there is none.
    explicit Arguments(const Node &node, const Node *original = nullptr) : node_(node), original_(original) {}

    const Node &node() const { return node_; }
    const std::string &target() const { return node_.target; }
    bool has(std::string_view name) const;  ///< given and not None

    Node *tensor(std::string_view name) const;
    Node *optional_tensor(std::string_view name) const;        ///< nullptr for None
    Operand operand(std::string_view name) const;              ///< a tensor, or a number in a tensor's place
    std::vector<Node *> tensors(std::string_view name) const;  ///< nullptr for each None

    bool flag(std::string_view name, bool otherwise) const;
    std::int64_t integer(std::string_view name, std::optional<std::int64_t> otherwise = {}) const;
    std::optional<std::int64_t> optional_integer(std::string_view name) const;
    Extent extent(std::string_view name, std::optional<Extent> otherwise = {}) const;
    std::optional<Extent> optional_extent(std::string_view name) const;
    Extents extents(std::string_view name, std::optional<Extents> otherwise = {}) const;  ///< one integer is a list of one
    std::optional<Extents> optional_extents(std::string_view name) const;
    std::optional<std::vector<std::int64_t>> optional_integers(std::string_view name) const;
    std::vector<std::int64_t> integers(std::string_view name, std::optional<std::vector<std::int64_t>> otherwise = {}) const;
    Number number(std::string_view name, std::optional<Number> otherwise = {}) const;
    std::optional<Number> optional_number(std::string_view name) const;
    double real(std::string_view name, std::optional<double> otherwise = {}) const;
    std::optional<double> optional_real(std::string_view name) const;
    std::vector<double> reals(std::string_view name) const;  ///< empty for None
    std::optional<DType> dtype(std::string_view name) const;
    std::string text(std::string_view name, std::string otherwise) const;

    /// A dimension of a tensor of this rank, made non-negative.
    int dim(std::string_view name, int rank, std::optional<std::int64_t> otherwise = {}) const;
    /// Dimensions; None, missing or an empty list means all of them.
    Dims dims(std::string_view name, int rank) const;

    /// What the program says of the result, where it says it.
    const TensorMeta *result(std::size_t index = 0) const;
    Extents result_sizes() const;  ///< UserError where the program does not say
    DType result_dtype(DType otherwise) const;
    /// An input as the captured program laid it out.
    const TensorMeta *captured(std::string_view name) const;

    [[noreturn]] void refuse(std::string_view cause) const;

private:
    const Argument *given(std::string_view name) const;
    const Node &node_;
    const Node *original_;
};

/// A list of one value stands for each of `count` (as in stride=[2]); an empty list stands for `otherwise`.
Extents expand_list(Extents list, std::size_t count, const Extents &otherwise);

}  // namespace tilewright
