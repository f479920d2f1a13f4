// Typed access to a node's arguments for translations.
#include "dsl/error.h"
#include "lowering/translate/context.h"

namespace tilewright {

namespace {

[[noreturn]] void wrong_kind(const Node &node, std::string_view argument, std::string_view expected) {
    user_error("node {} ({}): argument {} is not {}; see the operator's row in lowering/decompose/CORE.md", node.name, node.target,
               argument, expected);
}

template<typename T> const T &get(const Node &node, std::string_view argument, std::string_view expected) {
    const T *value = TranslationContext::argument(node, argument).get_if<T>();
    if (!value) {
        wrong_kind(node, argument, expected);
    }
    return *value;
}

int to_int(const Node &node, std::string_view argument, const Extent &extent) {
    auto value = extent.constant();
    if (!value || *value > INT32_MAX || *value < INT32_MIN) {
        wrong_kind(node, argument, "a constant of 32 bits");
    }
    return static_cast<int>(*value);
}

}  // namespace

const Argument &TranslationContext::argument(const Node &node, std::string_view argument) {
    const Argument *found = node.find(argument);
    if (!found) {
        user_error("node {} ({}) has no argument {}; see the operator's row in lowering/decompose/CORE.md", node.name, node.target,
                   argument);
    }
    return *found;
}

TensorValue TranslationContext::operand(const Node &node, std::string_view argument) { return value(node.input(argument), is_renaming); }

TensorValue TranslationContext::view_operand(const Node &node, std::string_view argument) {
    return value(node.input(argument), is_index_map);
}

std::vector<std::optional<TensorValue>> TranslationContext::optional_operands(const Node &node, std::string_view argument) {
    std::vector<std::optional<TensorValue>> values;
    for (const Argument &element : get<ArgumentList>(node, argument, "a list of tensors")) {
        if (Node *tensor = element.node()) {
            values.emplace_back(value(tensor, is_renaming));
        } else if (element.is_none()) {
            values.emplace_back(std::nullopt);
        } else {
            wrong_kind(node, argument, "a list of tensors");
        }
    }
    return values;
}

std::vector<TensorValue> TranslationContext::operands(const Node &node, std::string_view argument) {
    std::vector<TensorValue> values;
    for (std::optional<TensorValue> &element : optional_operands(node, argument)) {
        if (!element) {
            wrong_kind(node, argument, "a list of tensors");
        }
        values.push_back(std::move(*element));
    }
    return values;
}

Extent TranslationContext::extent(const Node &node, std::string_view argument) { return get<Extent>(node, argument, "an integer"); }

std::vector<Extent> TranslationContext::extents(const Node &node, std::string_view argument) {
    std::vector<Extent> values;
    for (const Argument &element : get<ArgumentList>(node, argument, "a list of integers")) {
        const Extent *value = element.get_if<Extent>();
        if (!value) {
            wrong_kind(node, argument, "a list of integers");
        }
        values.push_back(*value);
    }
    return values;
}

int TranslationContext::integer(const Node &node, std::string_view argument) { return to_int(node, argument, extent(node, argument)); }

std::vector<int> TranslationContext::integers(const Node &node, std::string_view argument) {
    std::vector<int> values;
    for (const Extent &value : extents(node, argument)) {
        values.push_back(to_int(node, argument, value));
    }
    return values;
}

double TranslationContext::number(const Node &node, std::string_view argument) {
    const Argument &value = TranslationContext::argument(node, argument);
    if (const auto *flag = value.get_if<bool>()) {
        return *flag ? 1 : 0;
    }
    if (const auto *extent = value.get_if<Extent>(); extent && extent->is_constant()) {
        return static_cast<double>(extent->value());
    }
    return get<double>(node, argument, "a number");
}

bool TranslationContext::flag(const Node &node, std::string_view argument) { return get<bool>(node, argument, "a boolean"); }

std::string TranslationContext::text(const Node &node, std::string_view argument) { return get<std::string>(node, argument, "a string"); }

DType TranslationContext::dtype(const Node &node, std::string_view argument) { return get<DType>(node, argument, "an element type"); }

}  // namespace tilewright
