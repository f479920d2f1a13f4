// Reading and writing at places that tensors give.
#include <algorithm>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

constexpr const char *data_dependent =
    "its result has as many elements as the mask has true ones, a size that depends on data; use torch.where or masked_fill, which keep "
    "the shape";

bool is_mask(const Node *index) { return dtype_of(index) == DType::boolean || dtype_of(index) == DType::uint8; }

/// int64 indices of one shape, one entry for each of self's dimensions.
std::vector<Node *> broadcast_indices(Builder &b, const Arguments &a, const Node *self, const std::vector<Node *> &given) {
    if (given.size() > sizes_of(self).size()) {
        a.refuse(fmt::format("{} indices for {} dimensions", given.size(), rank_of(self)));
    }
    Extents shape;
    for (const Node *index : given) {
        if (index) {
            if (is_mask(index)) {
                a.refuse(data_dependent);
            }
            shape = broadcast_shapes(shape, sizes_of(index));
        }
    }
    std::vector<Node *> indices(rank_of(self), nullptr);
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (given[i]) {
            indices[i] = b.broadcast(b.convert(given[i], DType::int64), shape);
        }
    }
    return indices;
}

bool has_index(const std::vector<Node *> &indices) {
    return std::any_of(indices.begin(), indices.end(), [](const Node *n) { return n != nullptr; });
}

Results index(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const std::vector<Node *> indices = broadcast_indices(b, a, self, a.tensors("indices"));
    return has_index(indices) ? b.gather_nd(self, indices, true) : self;
}

/// x[mask] = value, where the value does not depend on how many elements the mask chooses.
Node *put_by_mask(Builder &b, const Arguments &a, Node *self, const std::vector<Node *> &given, Node *values) {
    const auto first = std::find_if(given.begin(), given.end(), [](const Node *n) { return n != nullptr; });
    const int dim = static_cast<int>(first - given.begin());
    Node *mask = b.convert(*first, DType::boolean);
    const int rest = rank_of(self) - dim - rank_of(mask);
    if (std::count_if(given.begin(), given.end(), [](const Node *n) { return n != nullptr; }) > 1 || rest < 0) {
        a.refuse("a mask among several indices chooses a number of elements that depends on data");
    }
    if (rank_of(values) > rest + dim && !(rank_of(values) <= rest + dim + 1 && sizes_of(values)[dim] == Extent(1))) {
        a.refuse("the values written through a mask are one for each true element, a size that depends on data; use torch.where");
    }
    // The values' shape is (before the mask, chosen, after it); one chosen element stands for all.
    Node *source = b.convert(values, dtype_of(self));
    if (rank_of(source) > rest) {
        Extents shape;
        const int before = rank_of(source) - rest - 1;
        for (int i = 0; i < before; ++i) {
            shape.push_back(sizes_of(source)[i]);
        }
        shape.insert(shape.end(), rank_of(mask), Extent(1));
        shape.insert(shape.end(), sizes_of(source).end() - rest, sizes_of(source).end());
        source = b.reshape(source, shape);
    }
    Extents shape = sizes_of(mask);
    shape.insert(shape.end(), rest, Extent(1));
    Node *chosen = b.broadcast(b.reshape(mask, shape), sizes_of(self));
    if (a.flag("accumulate", false)) {
        source = b.convert(b.add(b.to_compute(self), b.to_compute(source)), dtype_of(self));
    }
    return b.where(chosen, source, self);
}

/// Sums are formed in the type that PyTorch computes in.
Node *put(Builder &b, Node *self, const std::vector<Node *> &indices, Node *values, bool accumulate, bool wrap) {
    Node *source = b.broadcast(b.convert(values, dtype_of(self)), Builder::gather_nd_shape(self, indices));
    if (!accumulate) {
        return b.index_put(self, indices, source, false, wrap);
    }
    if (dtype_of(self) == DType::boolean) {
        Node *sum = b.index_put(b.convert(self, DType::int32), indices, b.convert(source, DType::int32), true, wrap);
        return b.convert(sum, DType::boolean);
    }
    return b.convert(b.index_put(b.to_compute(self), indices, b.to_compute(source), true, wrap), dtype_of(self));
}

Results index_put(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *values = a.tensor("values");
    const std::vector<Node *> given = a.tensors("indices");
    if (std::any_of(given.begin(), given.end(), [](const Node *n) { return n && is_mask(n); })) {
        return put_by_mask(b, a, self, given, values);
    }
    const std::vector<Node *> indices = broadcast_indices(b, a, self, given);
    if (!has_index(indices)) {
        return b.broadcast(b.convert(values, dtype_of(self)), sizes_of(self));
    }
    return put(b, self, indices, values, a.flag("accumulate", false), true);
}

/// A tensor without dimensions counts as one element along one.
Node *with_dimension(Builder &b, Node *a) { return rank_of(a) == 0 ? b.flatten(a) : a; }

std::vector<Node *> index_along(Builder &b, const Node *self, int dim, Node *index) {
    std::vector<Node *> indices(rank_of(self), nullptr);
    indices[dim] = b.convert(with_dimension(b, index), DType::int64);
    return indices;
}

Node *index_select(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *x = with_dimension(b, self);
    Node *result = b.gather_nd(x, index_along(b, x, a.dim("dim", rank_of(x)), a.tensor("index")), false);
    return rank_of(self) == 0 ? b.reshape(result, {}) : result;
}

Node *index_add(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *x = with_dimension(b, self);
    const int dim = a.dim("dim", rank_of(x));
    Node *source = b.to_compute(b.convert(with_dimension(b, a.tensor("source")), dtype_of(self)));
    const Number alpha = a.number("alpha", Number(Extent(1)));
    if (!is_one(alpha) && dtype_of(self) != DType::boolean) {
        source = b.mul(source, alpha);
    }
    const std::vector<Node *> indices = index_along(b, x, dim, a.tensor("index"));
    Node *sum = nullptr;
    if (dtype_of(self) == DType::boolean) {
        sum = put(b, x, indices, source, true, false);
    } else {
        sum = b.convert(b.index_put(b.to_compute(x), indices, b.broadcast(source, Builder::gather_nd_shape(x, indices)), true, false),
                        dtype_of(self));
    }
    return b.reshape(sum, sizes_of(self));
}

Node *index_copy(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *x = with_dimension(b, self);
    const std::vector<Node *> indices = index_along(b, x, a.dim("dim", rank_of(x)), a.tensor("index"));
    return b.reshape(put(b, x, indices, with_dimension(b, a.tensor("source")), false, false), sizes_of(self));
}

Node *index_fill(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *x = with_dimension(b, self);
    const std::vector<Node *> indices = index_along(b, x, a.dim("dim", rank_of(x)), a.tensor("index"));
    return b.reshape(put(b, x, indices, as_tensor(b, a.operand("value"), dtype_of(self)), false, true), sizes_of(self));
}

Node *gather(Builder &b, const Arguments &a) {
    Node *self = with_dimension(b, a.tensor("self"));
    Node *index = a.tensor("index");
    Node *place = b.convert(with_dimension(b, index), DType::int64);
    return b.reshape(b.gather(self, a.dim("dim", rank_of(self)), place), sizes_of(index));
}

/// Negative indices count from the end.
Node *wrapped(Builder &b, Node *index, const Extent &size) { return b.where(b.lt(index, 0), b.add(index, size), index); }

Node *take_along_dim(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *index = b.convert(a.tensor("indices"), DType::int64);
    if (!a.has("dim")) {
        return b.gather(b.flatten(self), 0, wrapped(b, b.flatten(index), product(sizes_of(self))));
    }
    const int dim = a.dim("dim", rank_of(self));
    Extents of_self = sizes_of(self);
    Extents of_index = sizes_of(index);
    for (int i = 0; i < rank_of(self); ++i) {
        if (i != dim) {
            of_self[i] = of_index[i] = broadcast_shapes({of_self[i]}, {of_index[i]})[0];
        }
    }
    return b.gather(b.broadcast(self, of_self), dim, b.broadcast(wrapped(b, index, sizes_of(self)[dim]), of_index));
}

Node *put_flat(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *place = b.flatten(b.convert(a.tensor("index"), DType::int64));
    return b.reshape(put(b, b.flatten(self), {place}, b.flatten(a.tensor("source")), a.flag("accumulate", false), true), sizes_of(self));
}

/// How many boundaries lie before each value; NaN lies after all.
Node *count_before(Builder &b, Node *boundaries, Node *values, bool right, bool int32) {
    const DType type = result_type({boundaries, values});
    const DType computed = type == DType::boolean ? DType::uint8 : compute_type(type);
    Node *value = b.unsqueeze(b.convert(values, computed), rank_of(values));
    Node *edge = b.convert(boundaries, computed);
    if (rank_of(edge) > 1) {
        edge = b.unsqueeze(edge, rank_of(edge) - 1);
    }
    Node *before = b.logical_not(b.binary(right ? "gt" : "ge", edge, value));
    Node *count = b.sum(b.convert(before, DType::int64), {rank_of(before) - 1});
    return b.convert(count, int32 ? DType::int32 : DType::int64);
}

Node *bucketize(Builder &b, const Arguments &a) {
    const Operand self = a.operand("self");
    Node *values = self.node() ? self.node() : as_tensor(b, self, result_type({self}));
    return count_before(b, a.tensor("boundaries"), values, a.flag("right", false), a.flag("out_int32", false));
}

Node *searchsorted(Builder &b, const Arguments &a) {
    const Operand self = a.operand("self");
    Node *edges = a.tensor("sorted_sequence");
    Node *values = self.node() ? self.node() : as_tensor(b, self, result_type({self}));
    if (Node *sorter = a.optional_tensor("sorter")) {
        edges = b.gather(edges, rank_of(edges) - 1, sorter);
    }
    const bool right = a.flag("right", false) || a.text("side", "left") == "right";
    return count_before(b, edges, values, right, a.flag("out_int32", false));
}

/// The operator's indices; they count only where the mask is true.
std::vector<Node *> masked_indices(Builder &b, const Arguments &a, Node *self, Node *mask) {
    std::vector<Node *> given = a.tensors("indices");
    for (Node *&place : given) {
        place = place ? b.where(mask, b.convert(place, DType::int64), 0) : place;
    }
    return broadcast_indices(b, a, self, given);
}

/// Reads where the mask is true and gives `fill` elsewhere.
Node *masked_index(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *mask = a.tensor("mask");
    return b.where(mask, b.gather_nd(self, masked_indices(b, a, self, mask), true), a.number("fill"));
}

Node *masked_index_put(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *mask = a.tensor("mask");
    std::vector<Node *> places = masked_indices(b, a, self, mask);
    Node *values = b.where(mask, a.tensor("values"), 0.0);
    return put(b, self, places, values, true, true);
}

/// The reduction of rows into the rows that the index names, as a scatter.
Node *index_reduce(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *source = a.tensor("source");
    const int dim = a.dim("dim", rank_of(self));
    Node *index = b.convert(a.tensor("index"), DType::int64);
    if (rank_of(self) > 0) {
        Extents along(rank_of(self), Extent(1));
        along[dim] = product(sizes_of(index));
        index = b.broadcast(b.reshape(index, along), sizes_of(source));
    }
    return b
        .apply("aten.scatter_reduce.two", {{"self", self},
                                           {"dim", Extent(dim)},
                                           {"index", index},
                                           {"src", source},
                                           {"reduce", a.text("reduce", "")},
                                           {"include_self", a.flag("include_self", true)}})
        .front();
}

}  // namespace

void add_index_rules(RuleTable &table) {
    table.add({"aten.index.Tensor", "aten._unsafe_index.Tensor"}, index);
    table.add({"aten.index_put.default", "aten._unsafe_index_put.default"}, index_put);
    table.add("aten.index_select.default", index_select);
    table.add("aten.index_add.default", index_add);
    table.add("aten.index_copy.default", index_copy);
    table.add({"aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor"}, index_fill);
    table.add("aten.gather.default", gather);
    table.add("aten.take_along_dim.default", take_along_dim);
    table.add("aten.take.default", [](Builder &b, const Arguments &a) {
        return b.gather_nd(b.flatten(a.tensor("self")), {b.convert(a.tensor("index"), DType::int64)}, true);
    });
    table.add("aten.put.default", put_flat);
    table.add("aten._unsafe_masked_index.default", masked_index);
    table.add("aten._unsafe_masked_index_put_accumulate.default", masked_index_put);
    table.add("aten.index_reduce.default", index_reduce);
    table.add({"aten.bucketize.Tensor", "aten.bucketize.Scalar"}, bucketize);
    table.add({"aten.searchsorted.Tensor", "aten.searchsorted.Scalar"}, searchsorted);
}

}  // namespace tilewright
