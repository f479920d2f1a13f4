#include "lowering/decompose/functionalize_views.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "dsl/error.h"

namespace tilewright {
namespace {

using Kind = ViewStep::Kind;
using Dims = std::vector<std::int64_t>;

ArgumentList to_arguments(const std::vector<Extent> &extents) { return {extents.begin(), extents.end()}; }
ArgumentList to_arguments(const Dims &dims) {
    ArgumentList list;
    for (const std::int64_t dim : dims) {
        list.emplace_back(Extent(dim));
    }
    return list;
}

const Extent *extent_argument(const Node &node, std::string_view name) {
    const Argument *argument = node.find(name);
    return argument == nullptr ? nullptr : argument->get_if<Extent>();
}

std::int64_t integer_argument(const Node &node, std::string_view name, std::int64_t otherwise) {
    const Extent *extent = extent_argument(node, name);
    return extent == nullptr ? otherwise : extent->value();
}

std::int64_t wrap(std::int64_t dim, int rank) { return dim < 0 ? dim + std::max(rank, 1) : dim; }

/// One dimension or a list of them.
Dims dims_argument(const Node &node, std::string_view name) {
    Dims dims;
    const Argument *argument = node.find(name);
    if (argument == nullptr) {
        return dims;
    }
    if (const Extent *one = argument->get_if<Extent>()) {
        dims.push_back(one->value());
    } else if (const ArgumentList *list = argument->get_if<ArgumentList>()) {
        for (const Argument &element : *list) {
            const Extent *dim = element.get_if<Extent>();
            internal_assert(dim != nullptr, "node {}: {} is no list of dimensions", node.name, name);
            dims.push_back(dim->value());
        }
    }
    return dims;
}

Dims identity(int rank) {
    Dims dims(static_cast<std::size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
}

Dims swapped(int rank, std::int64_t a, std::int64_t b) {
    Dims dims = identity(rank);
    if (rank > 0) {
        std::swap(dims[static_cast<std::size_t>(wrap(a, rank))], dims[static_cast<std::size_t>(wrap(b, rank))]);
    }
    return dims;
}

Dims moved(const Node &node, int rank) {
    Dims from = dims_argument(node, "source"), to = dims_argument(node, "destination");
    Dims result(static_cast<std::size_t>(rank), -1);
    std::vector<bool> taken(static_cast<std::size_t>(rank));
    for (std::size_t i = 0; i < from.size(); ++i) {
        result[static_cast<std::size_t>(wrap(to[i], rank))] = wrap(from[i], rank);
        taken[static_cast<std::size_t>(wrap(from[i], rank))] = true;
    }
    std::int64_t next = 0;
    for (std::int64_t &dim : result) {
        if (dim < 0) {
            while (taken[static_cast<std::size_t>(next)]) {
                ++next;
            }
            dim = next++;
        }
    }
    return result;
}

/// "aten.view.default" → "view"; empty outside aten.
std::string_view operator_name(std::string_view target) {
    constexpr std::string_view prefix = "aten.";
    if (!target.starts_with(prefix)) {
        return {};
    }
    target.remove_prefix(prefix.size());
    return target.substr(0, target.find('.'));
}

bool in(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_true(const Node &node, std::string_view name) {
    const Argument *argument = node.find(name);
    const bool *value = argument == nullptr ? nullptr : argument->get_if<bool>();
    return value != nullptr && *value;
}

/// Operators that give their argument back where there is nothing to do, and otherwise a copy or a view.
bool gives_itself(std::string_view name, const Node &node, const TensorMeta &from, const TensorMeta &to) {
    if (in(name,
           {"alias", "detach", "detach_", "lift_fresh", "positive", "resolve_conj", "resolve_neg", "requires_grad_", "real", "conj"})) {
        return true;
    }
    if (in(name, {"to", "type_as", "contiguous"})) {
        return !is_true(node, "copy") && from.dtype == to.dtype && from.strides == to.strides;
    }
    if (in(name, {"dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "feature_alpha_dropout"})) {
        return !is_true(node, "train");
    }
    return in(name, {"expand", "expand_as", "broadcast_to"}) && from.sizes == to.sizes;
}

struct Recogniser {
    const Node &node;
    Node *source;
    std::string_view name;
    const TensorMeta &from;

    ViewStep step(Kind kind, const TensorMeta &to, std::vector<NamedArgument> arguments) const {
        return {kind, std::move(arguments), from, to, fmt::format("node {}: {}", node.name, node.target)};
    }
    ViewStep slice(std::int64_t dim, const Extent &start, const Extent &end, const TensorMeta &to) const {
        return step(Kind::slice, to, {{"dim", Extent(dim)}, {"start", start}, {"end", end}, {"step", Extent(1)}});
    }
    ViewStep select(std::int64_t dim, const Extent &index, const TensorMeta &to) const {
        return step(Kind::select, to, {{"dim", Extent(dim)}, {"index", index}});
    }

    std::optional<Dims> permutation() const {
        const int rank = from.rank();
        if (name == "permute") {
            Dims dims = dims_argument(node, "dims");
            for (std::int64_t &dim : dims) {
                dim = wrap(dim, rank);
            }
            return dims;
        }
        if (name == "transpose" || name == "transpose_") {
            return swapped(rank, integer_argument(node, "dim0", 0), integer_argument(node, "dim1", 1));
        }
        if (in(name, {"swapaxes", "swapaxes_"})) {
            return swapped(rank, integer_argument(node, "axis0", 0), integer_argument(node, "axis1", 1));
        }
        if (in(name, {"swapdims", "swapdims_"})) {
            return swapped(rank, integer_argument(node, "dim0", 0), integer_argument(node, "dim1", 1));
        }
        if (name == "t" || name == "t_") {
            return rank < 2 ? identity(rank) : swapped(rank, 0, 1);
        }
        if (in(name, {"mT", "mH", "adjoint"})) {
            return swapped(rank, -2, -1);
        }
        if (in(name, {"numpy_T", "matrix_H"})) {
            Dims dims = identity(rank);
            std::reverse(dims.begin(), dims.end());
            return dims;
        }
        if (in(name, {"movedim", "moveaxis"})) {
            return moved(node, rank);
        }
        return std::nullopt;
    }

    std::optional<ViewStep> single(const TensorMeta &to) const {
        if (node.target == "aten.view.dtype") {
            return step(Kind::bitcast, to, {{"dtype", to.dtype}});
        }
        if (in(name, {"view", "_unsafe_view", "view_as", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "_reshape_alias", "atleast_1d",
                      "atleast_2d", "atleast_3d", "unflatten"})) {
            return step(Kind::reshape, to, {});
        }
        // A reshape is a view unless it had to copy, and then its result is contiguous where its argument was not.
        if (in(name, {"reshape", "reshape_as", "flatten", "ravel"}) && (from.is_contiguous() || !to.is_contiguous())) {
            return step(Kind::reshape, to, {});
        }
        if (const auto dims = permutation()) {
            return step(Kind::permute, to, {{"dims", to_arguments(*dims)}});
        }
        if (name == "slice") {
            std::vector<NamedArgument> arguments{{"dim", Extent(wrap(integer_argument(node, "dim", 0), from.rank()))}};
            for (const char *bound : {"start", "end", "step"}) {
                const Argument *argument = node.find(bound);
                arguments.push_back({bound, argument != nullptr                 ? *argument
                                            : bound == std::string_view("step") ? Argument(Extent(1))
                                                                                : Argument()});
            }
            return step(Kind::slice, to, std::move(arguments));
        }
        if (name == "narrow" && extent_argument(node, "start") != nullptr) {
            const std::int64_t dim = wrap(integer_argument(node, "dim", 0), from.rank());
            const Extent start = *extent_argument(node, "start");
            const bool negative = start.is_constant() && start.value() < 0;
            const Extent begin = negative ? start + from.sizes[static_cast<std::size_t>(dim)] : start;
            return slice(dim, begin, begin + to.sizes[static_cast<std::size_t>(dim)], to);
        }
        if (name == "select" && extent_argument(node, "index") != nullptr) {
            return select(wrap(integer_argument(node, "dim", 0), from.rank()), *extent_argument(node, "index"), to);
        }
        if (name == "diagonal") {
            return step(Kind::diagonal, to,
                        {{"offset", Extent(integer_argument(node, "offset", 0))},
                         {"dim1", Extent(wrap(integer_argument(node, "dim1", 0), from.rank()))},
                         {"dim2", Extent(wrap(integer_argument(node, "dim2", 1), from.rank()))}});
        }
        if (in(name, {"expand", "expand_as", "broadcast_to"})) {
            return step(Kind::expand, to, {});
        }
        if (name == "as_strided") {
            return step(Kind::as_strided, to, {});
        }
        if (name == "unfold") {
            return step(Kind::unfold, to, {node.arguments.begin() + 1, node.arguments.end()});
        }
        return std::nullopt;
    }

    std::vector<ViewStep> several(const std::vector<std::optional<TensorMeta>> &results) const {
        std::vector<ViewStep> steps;
        const bool splits =
            in(name, {"split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"});
        if ((!splits && name != "unbind") || from.rank() == 0) {
            return steps;
        }
        const std::int64_t dim = wrap(integer_argument(node, "dim", 0), from.rank());
        Extent start = 0;
        for (const auto &result : results) {
            if (!result) {
                return {};
            }
            if (splits) {
                const Extent end = start + result->sizes[static_cast<std::size_t>(dim)];
                steps.push_back(slice(dim, start, end, *result));
                start = end;
            } else {
                steps.push_back(select(dim, start, *result));
                start = start + 1;
            }
        }
        return steps;
    }
};

}  // namespace

Aliasing aliasing_of(const Node &node) {
    const std::string_view name = node.opcode == Opcode::call_function ? operator_name(node.target) : std::string_view();
    if (name.empty() || node.arguments.empty()) {
        return {};
    }
    Node *source = node.arguments[0].value.node();
    const TensorMeta *from = source == nullptr ? nullptr : std::get_if<TensorMeta>(&source->meta);
    if (from == nullptr) {
        return {};
    }
    const Recogniser recogniser{node, source, name, *from};
    if (const auto *results = std::get_if<std::vector<std::optional<TensorMeta>>>(&node.meta)) {
        std::vector<ViewStep> steps = recogniser.several(*results);
        return steps.empty() ? Aliasing{} : Aliasing{Aliasing::Kind::views, source, std::move(steps)};
    }
    const TensorMeta *to = std::get_if<TensorMeta>(&node.meta);
    if (to == nullptr) {
        return {};
    }
    if (gives_itself(name, node, *from, *to)) {
        return {Aliasing::Kind::identity, source, {}};
    }
    if (auto step = recogniser.single(*to)) {
        return {Aliasing::Kind::view, source, {std::move(*step)}};
    }
    return {};
}

Node *read_view(Graph &graph, const ViewStep &step, Node *parent) {
    std::vector<NamedArgument> arguments{{"self", parent}};
    arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
    const auto call = [&](const char *target) { return graph.call(target, std::move(arguments), step.result); };
    switch (step.kind) {
        case Kind::reshape:
            arguments.push_back({"size", to_arguments(step.result.sizes)});
            return call("aten.view.default");
        case Kind::permute:
            return call("aten.permute.default");
        case Kind::slice:
            return call("aten.slice.Tensor");
        case Kind::select:
            return call("aten.select.int");
        case Kind::diagonal:
            return call("aten.diagonal.default");
        case Kind::expand:
            arguments.push_back({"size", to_arguments(step.result.sizes)});
            return call("aten.expand.default");
        case Kind::bitcast:
            return call("aten.view.dtype");
        case Kind::unfold:
            return call("aten.unfold.default");
        case Kind::as_strided:
            break;
    }
    arguments.push_back({"size", to_arguments(step.result.sizes)});
    arguments.push_back({"stride", to_arguments(step.result.strides)});
    arguments.push_back({"storage_offset", step.result.offset});
    return call("aten.as_strided.default");
}

Node *write_view(Graph &graph, const ViewStep &step, Node *parent, Node *value) {
    const auto scatter = [&](const char *target) {
        std::vector<NamedArgument> arguments{{"self", parent}, {"src", value}};
        arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
        return graph.call(target, std::move(arguments), step.parent);
    };
    switch (step.kind) {
        case Kind::reshape:
            return graph.call("aten.view.default", {{"self", value}, {"size", to_arguments(step.parent.sizes)}}, step.parent);
        case Kind::permute: {
            const ArgumentList &dims = *step.arguments[0].value.get_if<ArgumentList>();
            Dims inverse(dims.size());
            for (std::size_t i = 0; i < dims.size(); ++i) {
                inverse[static_cast<std::size_t>(dims[i].get_if<Extent>()->value())] = static_cast<std::int64_t>(i);
            }
            return graph.call("aten.permute.default", {{"self", value}, {"dims", to_arguments(inverse)}}, step.parent);
        }
        case Kind::slice:
            return scatter("aten.slice_scatter.default");
        case Kind::select:
            return scatter("aten.select_scatter.default");
        case Kind::diagonal:
            return scatter("aten.diagonal_scatter.default");
        case Kind::bitcast:
            return graph.call("aten.view.dtype", {{"self", value}, {"dtype", step.parent.dtype}}, step.parent);
        case Kind::as_strided:
            return graph.call("aten.as_strided_scatter.default",
                              {{"self", parent},
                               {"src", value},
                               {"size", to_arguments(step.result.sizes)},
                               {"stride", to_arguments(step.result.strides)},
                               {"storage_offset", step.result.offset}},
                              step.parent);
        case Kind::expand:
        case Kind::unfold:
            break;
    }
    user_error("{}: writing in place to a view whose elements overlap has no defined result; clone() it first", step.origin);
}

}  // namespace tilewright
