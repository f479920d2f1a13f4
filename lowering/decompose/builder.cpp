#include "lowering/decompose/builder.h"

#include <algorithm>

#include "dsl/error.h"

namespace tilewright {

double to_double(const Number &number) {
    if (const auto *flag = std::get_if<bool>(&number)) {
        return *flag ? 1.0 : 0.0;
    }
    if (const auto *integer = std::get_if<Extent>(&number)) {
        return static_cast<double>(integer->value());
    }
    return std::get<double>(number);
}

namespace {

bool equals(const Number &number, int value) {
    const auto *integer = std::get_if<Extent>(&number);
    return integer ? *integer == Extent(value) : to_double(number) == value;
}

bool has_no_elements(const Extents &size) {
    return std::any_of(size.begin(), size.end(), [](const Extent &extent) { return extent == Extent(0); });
}

std::string key_of(const Argument &argument) {
    if (const auto *node = argument.get_if<Node *>()) {
        return fmt::format("%{}", static_cast<const void *>(*node));
    }
    if (const auto *flag = argument.get_if<bool>()) {
        return *flag ? "T" : "F";
    }
    if (const auto *extent = argument.get_if<Extent>()) {
        return extent->to_string();
    }
    if (const auto *number = argument.get_if<double>()) {
        return fmt::format("{:a}f", *number);
    }
    if (const auto *type = argument.get_if<DType>()) {
        return std::string(name(*type));
    }
    if (const auto *list = argument.get_if<ArgumentList>()) {
        std::string key = "[";
        for (const Argument &element : *list) {
            key += key_of(element) + ",";
        }
        return key + "]";
    }
    internal_error("an argument that core operators do not have");
}

}  // namespace

bool is_zero(const Number &number) { return equals(number, 0); }
bool is_one(const Number &number) { return equals(number, 1); }

Argument to_argument(const Extents &extents) {
    ArgumentList list;
    for (const Extent &extent : extents) {
        list.emplace_back(extent);
    }
    return Argument(std::move(list));
}

Argument to_argument(const Dims &dims) {
    ArgumentList list;
    for (int dim : dims) {
        list.emplace_back(Extent(dim));
    }
    return Argument(std::move(list));
}

Argument to_argument(const std::vector<Node *> &nodes) {
    ArgumentList list;
    for (Node *node : nodes) {
        list.push_back(node ? Argument(node) : Argument());
    }
    return Argument(std::move(list));
}

Argument to_argument(const Number &number) {
    return std::visit([](const auto &value) { return Argument(value); }, number);
}

DType dtype_of(const Node *node) { return node->tensor().dtype; }
const Extents &sizes_of(const Node *node) { return node->tensor().sizes; }
int rank_of(const Node *node) { return node->tensor().rank(); }

int wrap_dim(std::int64_t dim, int rank) {
    const int count = std::max(rank, 1);
    if (dim < -count || dim >= count) {
        user_error("dimension {} is out of range for a tensor with {} dimensions", dim, rank);
    }
    return static_cast<int>(dim < 0 ? dim + count : dim);
}

Dims all_dims(int rank) {
    Dims dims;
    for (int i = 0; i < rank; ++i) {
        dims.push_back(i);
    }
    return dims;
}

bool may_equal(const Extent &a, const Extent &b) { return a == b || !a.is_constant() || !b.is_constant(); }

Extents broadcast_shapes(const Extents &a, const Extents &b) {
    const Extents &longer = a.size() >= b.size() ? a : b;
    const Extents &shorter = a.size() >= b.size() ? b : a;
    Extents result = longer;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        Extent &out = result[result.size() - shorter.size() + i];
        const Extent &other = shorter[i];
        if (other == Extent(1) || out == other) {
            continue;
        }
        if (out == Extent(1)) {
            out = other;
        } else if (!may_equal(out, other)) {
            user_error("shapes {} and {} do not broadcast", to_string(a), to_string(b));
        } else if (other.is_constant()) {
            out = other;
        }
    }
    return result;
}

void Builder::set_origin(const Node &origin) {
    origin_name_ = origin.name;
    module_path_ = origin.module_path;
}

Node *Builder::emit(std::string target, std::vector<NamedArgument> arguments, DType type, Extents size) {
    if (has_no_elements(size) && target != "prims.full") {
        return full(size, type == DType::boolean ? Number(false) : Number(Extent(0)), type);
    }
    const std::string_view short_name = std::string_view(target).substr(target.find('.') + 1);
    std::string name = origin_name_.empty() ? std::string(short_name) : fmt::format("{}_{}", origin_name_, short_name);
    Node *node = graph_.call(std::move(target), std::move(arguments), TensorMeta::contiguous(type, std::move(size)), std::move(name));
    node->module_path = module_path_;
    return node;
}

Node *Builder::once(std::string target, std::vector<NamedArgument> arguments, DType type, Extents size) {
    std::string key = target;
    for (const NamedArgument &argument : arguments) {
        key += "|" + key_of(argument.value);
    }
    key += "|" + to_string(size);
    Node *&node = built_[key];
    if (node == nullptr) {
        node = emit(std::move(target), std::move(arguments), type, std::move(size));
    }
    return node;
}

std::pair<Node *, Node *> Builder::emit_pair(std::string target, std::vector<NamedArgument> arguments, TensorMeta first,
                                             TensorMeta second) {
    if (has_no_elements(first.sizes)) {
        return {full(first.sizes, Extent(0), first.dtype), full(second.sizes, Extent(0), second.dtype)};
    }
    const std::string base = target.substr(target.find('.') + 1);
    Node *pair = graph_.call(std::move(target), std::move(arguments), std::vector<std::optional<TensorMeta>>{first, second},
                             origin_name_.empty() ? base : fmt::format("{}_{}", origin_name_, base));
    pair->module_path = module_path_;
    Node *values = graph_.getitem(pair, 0);
    Node *indices = graph_.getitem(pair, 1);
    values->module_path = indices->module_path = module_path_;
    return {values, indices};
}

Node *Builder::operand(const Operand &operand, const Extents &size, DType type) {
    if (Node *node = operand.node()) {
        internal_assert(dtype_of(node) == type, "operands of types {} and {} meet in '{}'", name(type), name(dtype_of(node)), origin_name_);
        return broadcast(node, size);
    }
    return full(size, operand.number(), type);
}

Node *Builder::convert(Node *a, DType type, bool written_by_program) {
    if (dtype_of(a) == type) {
        return a;
    }
    // Widening and narrowing back is the identity.
    if (a->target == "prims.convert_element_type") {
        Node *inner = a->input("a");
        if (dtype_of(inner) == type && compute_type(type) == dtype_of(a)) {
            return inner;
        }
    }
    return once("prims.convert_element_type", {{"a", a}, {"dtype", type}, {"explicit", written_by_program}}, type, sizes_of(a));
}

Node *Builder::to_compute(Node *a) { return convert(a, compute_type(dtype_of(a))); }

Node *Builder::unary(std::string_view name, Node *a) {
    static constexpr std::string_view predicates[] = {"isfinite", "isinf", "isnan", "logical_not", "signbit"};
    const bool predicate = std::find(std::begin(predicates), std::end(predicates), name) != std::end(predicates);
    return emit(fmt::format("prims.{}", name), {{"a", a}}, predicate ? DType::boolean : dtype_of(a), sizes_of(a));
}

Node *Builder::binary(std::string_view name, Operand a, Operand b) {
    static constexpr std::string_view comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const bool comparison = std::find(std::begin(comparisons), std::end(comparisons), name) != std::end(comparisons);
    const Node *first = a.node() ? a.node() : b.node();
    internal_assert(first != nullptr, "prims.{} of two numbers", name);
    const DType type = dtype_of(first);
    Extents size = sizes_of(first);
    if (a.node() && b.node()) {
        size = broadcast_shapes(size, sizes_of(b.node()));
    }
    return emit(fmt::format("prims.{}", name), {{"a", operand(a, size, type)}, {"b", operand(b, size, type)}},
                comparison ? DType::boolean : type, size);
}

Node *Builder::where(Node *condition, Operand a, Operand b) {
    const Node *first = a.node() ? a.node() : b.node();
    internal_assert(first != nullptr, "prims.where of two numbers");
    const DType type = dtype_of(first);
    if (compute_type(type) != type) {
        const auto widened = [&](const Operand &o) { return o.node() ? Operand(to_compute(o.node())) : o; };
        return convert(where(condition, widened(a), widened(b)), type);
    }
    Extents size = sizes_of(condition);
    for (const Operand *value : {&a, &b}) {
        if (value->node()) {
            size = broadcast_shapes(size, sizes_of(value->node()));
        }
    }
    return emit("prims.where", {{"condition", broadcast(condition, size)}, {"a", operand(a, size, type)}, {"b", operand(b, size, type)}},
                type, size);
}

Node *Builder::full(const Extents &size, const Number &value, DType type) {
    Number typed = value;
    if (type == DType::boolean) {
        if (!std::holds_alternative<Extent>(value) || std::get<Extent>(value).is_constant()) {
            typed = to_double(value) != 0;
        }
    } else if (const auto *flag = std::get_if<bool>(&value)) {
        typed = Extent(*flag ? 1 : 0);
    }
    if (is_floating_point(type)) {
        if (const auto *integer = std::get_if<Extent>(&typed); integer && integer->is_constant()) {
            typed = static_cast<double>(integer->value());
        }
    } else if (const auto *real = std::get_if<double>(&typed); real && type != DType::boolean) {
        typed = Extent(static_cast<std::int64_t>(*real));
    }
    return once("prims.full", {{"size", to_argument(size)}, {"value", to_argument(typed)}, {"dtype", type}}, type, size);
}

Node *Builder::iota(const Extent &size, const Extent &start, const Extent &step, DType type) {
    return once("prims.iota", {{"size", size}, {"start", start}, {"step", step}, {"dtype", type}}, type, {size});
}

Node *Builder::sigmoid(Node *a) { return div(1.0, add(exp(neg(a)), 1.0)); }

Node *Builder::gather_nd(Node *a, std::vector<Node *> indices, bool wrap) {
    Extents size = gather_nd_shape(a, indices);
    return emit("tw.gather_nd", {{"a", a}, {"indices", to_argument(indices)}, {"wrap", wrap}}, dtype_of(a), std::move(size));
}

Extents Builder::gather_nd_shape(const Node *a, const std::vector<Node *> &indices) {
    const Extents *shape = nullptr;
    int first = -1;
    int last = -1;
    int count = 0;
    for (int i = 0; i < static_cast<int>(indices.size()); ++i) {
        if (indices[i]) {
            shape = &sizes_of(indices[i]);
            first = first < 0 ? i : first;
            last = i;
            ++count;
        }
    }
    internal_assert(shape != nullptr, "gather_nd without an index");
    const bool adjacent = last - first + 1 == count;
    Extents size;
    for (int i = 0; i < rank_of(a); ++i) {
        if (adjacent && i == first) {
            size.insert(size.end(), shape->begin(), shape->end());
        }
        if (!indices[i]) {
            size.push_back(sizes_of(a)[i]);
        }
    }
    if (!adjacent) {
        size.insert(size.begin(), shape->begin(), shape->end());
    }
    return size;
}

Node *Builder::gather(Node *a, int dim, Node *index) {
    return emit("tw.gather", {{"a", a}, {"dim", Extent(dim)}, {"index", index}}, dtype_of(a), sizes_of(index));
}

Node *Builder::scatter(Node *a, int dim, Node *index, Node *source, std::string_view reduce) {
    if (has_no_elements(sizes_of(index))) {
        return a;
    }
    return emit("tw.scatter", {{"a", a}, {"dim", Extent(dim)}, {"index", index}, {"src", source}, {"reduce", std::string(reduce)}},
                dtype_of(a), sizes_of(a));
}

Node *Builder::index_put(Node *a, std::vector<Node *> indices, Node *values, bool accumulate, bool wrap) {
    if (has_no_elements(sizes_of(values))) {
        return a;
    }
    return emit("tw.index_put",
                {{"a", a}, {"indices", to_argument(indices)}, {"values", values}, {"accumulate", accumulate}, {"wrap", wrap}}, dtype_of(a),
                sizes_of(a));
}

std::pair<Node *, Node *> Builder::sort(Node *a, int dim, bool descending, const std::optional<Extent> &count) {
    Extents sizes = sizes_of(a);
    sizes[dim] = count.value_or(sizes[dim]);
    return emit_pair("tw.sort", {{"a", a}, {"dim", Extent(dim)}, {"descending", descending}, {"count", sizes[dim]}},
                     TensorMeta::contiguous(dtype_of(a), sizes), TensorMeta::contiguous(DType::int64, sizes));
}

}  // namespace tilewright
