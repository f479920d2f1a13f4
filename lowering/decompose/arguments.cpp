#include "lowering/decompose/arguments.h"

#include "dsl/error.h"

namespace tilewright {
namespace {

/// What is given, else what stands for it; refused where there is neither.
template<class Value>
Value required(const Arguments &arguments, std::string_view name, std::optional<Value> given, std::optional<Value> otherwise) {
    if (!given && !otherwise) {
        arguments.refuse(fmt::format("argument '{}' is missing", name));
    }
    return given ? *std::move(given) : *std::move(otherwise);
}

/// An integer, perhaps the value of a node that yields one.
std::optional<Extent> as_extent(const Argument &argument) {
    if (const auto *extent = argument.get_if<Extent>()) {
        return *extent;
    }
    if (const auto *flag = argument.get_if<bool>()) {
        return Extent(*flag ? 1 : 0);
    }
    if (const Node *node = argument.node()) {
        if (const auto *extent = std::get_if<Extent>(&node->meta)) {
            return *extent;
        }
    }
    return std::nullopt;
}

std::optional<Number> as_number(const Argument &argument) {
    if (const auto *flag = argument.get_if<bool>()) {
        return *flag;
    }
    if (const auto *real = argument.get_if<double>()) {
        return *real;
    }
    if (std::optional<Extent> extent = as_extent(argument)) {
        return *extent;
    }
    return std::nullopt;
}

}  // namespace

void Arguments::refuse(std::string_view cause) const { user_error("node '{}' ({}): {}", node_.name, node_.target, cause); }

const Argument *Arguments::given(std::string_view name) const {
    const Argument *argument = node_.find(name);
    return argument && !argument->is_none() ? argument : nullptr;
}

bool Arguments::has(std::string_view name) const { return given(name) != nullptr; }

Node *Arguments::optional_tensor(std::string_view name) const {
    const Argument *argument = given(name);
    if (!argument) {
        return nullptr;
    }
    Node *node = argument->node();
    if (!node || !std::holds_alternative<TensorMeta>(node->meta)) {
        refuse(fmt::format("argument '{}' is no tensor", name));
    }
    return node;
}

Node *Arguments::tensor(std::string_view name) const {
    Node *node = optional_tensor(name);
    if (!node) {
        refuse(fmt::format("argument '{}' is missing", name));
    }
    return node;
}

Operand Arguments::operand(std::string_view name) const {
    const Argument *argument = given(name);
    if (argument) {
        if (std::optional<Number> number = as_number(*argument)) {
            return *number;
        }
    }
    return tensor(name);
}

std::vector<Node *> Arguments::tensors(std::string_view name) const {
    std::vector<Node *> nodes;
    if (const Argument *argument = given(name)) {
        const auto *list = argument->get_if<ArgumentList>();
        if (!list) {
            refuse(fmt::format("argument '{}' is no list of tensors", name));
        }
        for (const Argument &element : *list) {
            nodes.push_back(element.node());
        }
    }
    return nodes;
}

bool Arguments::flag(std::string_view name, bool otherwise) const {
    const Argument *argument = given(name);
    if (!argument) {
        return otherwise;
    }
    if (const auto *flag = argument->get_if<bool>()) {
        return *flag;
    }
    return integer(name) != 0;
}

std::optional<Extent> Arguments::optional_extent(std::string_view name) const {
    const Argument *argument = given(name);
    if (!argument) {
        return std::nullopt;
    }
    if (std::optional<Extent> extent = as_extent(*argument)) {
        return extent;
    }
    refuse(fmt::format("argument '{}' is no integer that is known before the program runs", name));
}

Extent Arguments::extent(std::string_view name, std::optional<Extent> otherwise) const {
    return required(*this, name, optional_extent(name), otherwise);
}

std::optional<std::int64_t> Arguments::optional_integer(std::string_view name) const {
    std::optional<Extent> extent = optional_extent(name);
    if (!extent) {
        return std::nullopt;
    }
    if (!extent->is_constant()) {
        refuse(fmt::format("argument '{}' is {}, but it has to be a constant", name, extent->to_string()));
    }
    return extent->value();
}

std::int64_t Arguments::integer(std::string_view name, std::optional<std::int64_t> otherwise) const {
    return required(*this, name, optional_integer(name), otherwise);
}

std::optional<Extents> Arguments::optional_extents(std::string_view name) const {
    const Argument *argument = given(name);
    if (!argument) {
        return std::nullopt;
    }
    const auto *list = argument->get_if<ArgumentList>();
    if (!list) {
        return Extents{extent(name)};
    }
    Extents extents;
    for (const Argument &element : *list) {
        std::optional<Extent> extent = as_extent(element);
        if (!extent) {
            refuse(fmt::format("argument '{}' holds a value that is no integer known before the program runs", name));
        }
        extents.push_back(*extent);
    }
    return extents;
}

Extents Arguments::extents(std::string_view name, std::optional<Extents> otherwise) const {
    return required(*this, name, optional_extents(name), otherwise);
}

std::optional<std::vector<std::int64_t>> Arguments::optional_integers(std::string_view name) const {
    std::optional<Extents> extents = optional_extents(name);
    if (!extents) {
        return std::nullopt;
    }
    std::vector<std::int64_t> values;
    for (const Extent &extent : *extents) {
        if (!extent.is_constant()) {
            refuse(fmt::format("argument '{}' holds {}, but it has to be constant", name, extent.to_string()));
        }
        values.push_back(extent.value());
    }
    return values;
}

std::vector<std::int64_t> Arguments::integers(std::string_view name, std::optional<std::vector<std::int64_t>> otherwise) const {
    return required(*this, name, optional_integers(name), otherwise);
}

std::optional<Number> Arguments::optional_number(std::string_view name) const {
    const Argument *argument = given(name);
    if (!argument) {
        return std::nullopt;
    }
    std::optional<Number> number = as_number(*argument);
    if (!number) {
        refuse(fmt::format("argument '{}' is no number", name));
    }
    return number;
}

Number Arguments::number(std::string_view name, std::optional<Number> otherwise) const {
    return required(*this, name, optional_number(name), otherwise);
}

std::optional<double> Arguments::optional_real(std::string_view name) const {
    std::optional<Number> value = optional_number(name);
    if (!value) {
        return std::nullopt;
    }
    if (const auto *extent = std::get_if<Extent>(&*value); extent && !extent->is_constant()) {
        refuse(fmt::format("argument '{}' is {}, but it has to be a constant", name, extent->to_string()));
    }
    return to_double(*value);
}

double Arguments::real(std::string_view name, std::optional<double> otherwise) const {
    return required(*this, name, optional_real(name), otherwise);
}

std::vector<double> Arguments::reals(std::string_view name) const {
    std::vector<double> values;
    if (const Argument *argument = given(name)) {
        if (const auto *list = argument->get_if<ArgumentList>()) {
            for (const Argument &element : *list) {
                std::optional<Number> number = as_number(element);
                if (!number) {
                    refuse(fmt::format("argument '{}' holds a value that is no number", name));
                }
                values.push_back(to_double(*number));
            }
        } else {
            values.push_back(real(name));
        }
    }
    return values;
}

std::optional<DType> Arguments::dtype(std::string_view name) const {
    const Argument *argument = given(name);
    if (!argument) {
        return std::nullopt;
    }
    const auto *type = argument->get_if<DType>();
    if (!type) {
        refuse(fmt::format("argument '{}' is no element type", name));
    }
    return *type;
}

std::string Arguments::text(std::string_view name, std::string otherwise) const {
    const Argument *argument = given(name);
    if (!argument) {
        return otherwise;
    }
    const auto *text = argument->get_if<std::string>();
    if (!text) {
        refuse(fmt::format("argument '{}' is no text", name));
    }
    return *text;
}

int Arguments::dim(std::string_view name, int rank, std::optional<std::int64_t> otherwise) const {
    const std::int64_t value = integer(name, otherwise);
    const int count = rank == 0 ? 1 : rank;
    if (value < -count || value >= count) {
        refuse(fmt::format("{} {} is out of range for {} dimensions", name, value, rank));
    }
    return static_cast<int>(value < 0 ? value + count : value);
}

Dims Arguments::dims(std::string_view name, int rank) const {
    std::optional<std::vector<std::int64_t>> values = optional_integers(name);
    if (!values || values->empty() || rank == 0) {
        return all_dims(rank);
    }
    Dims dims;
    for (std::int64_t value : *values) {
        if (value < -rank || value >= rank) {
            refuse(fmt::format("{} {} is out of range for {} dimensions", name, value, rank));
        }
        dims.push_back(static_cast<int>(value < 0 ? value + rank : value));
    }
    return dims;
}

const TensorMeta *Arguments::result(std::size_t index) const {
    if (const auto *meta = std::get_if<TensorMeta>(&node_.meta)) {
        return index == 0 ? meta : nullptr;
    }
    if (const auto *metas = std::get_if<std::vector<std::optional<TensorMeta>>>(&node_.meta)) {
        return index < metas->size() && (*metas)[index] ? &*(*metas)[index] : nullptr;
    }
    return nullptr;
}

Extents Arguments::result_sizes() const {
    const TensorMeta *meta = result();
    if (!meta) {
        refuse("the program does not say the shape of its result");
    }
    return meta->sizes;
}

DType Arguments::result_dtype(DType otherwise) const { return result() ? result()->dtype : otherwise; }

const TensorMeta *Arguments::captured(std::string_view name) const {
    const Argument *argument = original_ ? original_->find(name) : nullptr;
    const Node *node = argument ? argument->node() : nullptr;
    return node ? std::get_if<TensorMeta>(&node->meta) : nullptr;
}

Extents expand_list(Extents list, std::size_t count, const Extents &otherwise) {
    if (list.empty()) {
        return otherwise;
    }
    if (list.size() == 1 && count > 1) {
        list.resize(count, list.front());
    }
    return list;
}

}  // namespace tilewright
