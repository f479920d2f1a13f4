// Tensors read or written through a view: as_strided, and the *_scatter operators that functionalisation makes of in-place writes.
#include <algorithm>
#include <numeric>

#include "dsl/error.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// A tensor whose row-major elements are those of the storage that the program's tensor lies in, and the order of its dimensions.
struct StorageOrder {
    Node *elements;
    Dims order;
    Extent offset = 0;  ///< of the program's tensor in its storage
};

/// Storage is a permutation of the tensor's dimensions, as after a transpose; otherwise elements of it are unknown here.
StorageOrder storage_order(Builder &b, const Arguments &a, Node *self) {
    const TensorMeta *layout = a.captured("self");
    if (!layout || layout->is_contiguous()) {
        return {self, all_dims(rank_of(self)), layout ? layout->offset : Extent(0)};
    }
    Dims order = all_dims(layout->rank());
    const auto stride = [&](int dim) { return layout->strides[dim].is_constant() ? layout->strides[dim].value() : INT64_MAX; };
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return stride(x) > stride(y); });
    Extents size, strides;
    for (int dim : order) {
        size.push_back(layout->sizes[dim]);
        strides.push_back(layout->strides[dim]);
    }
    if (contiguous_strides(size) != strides) {
        a.refuse(fmt::format("as_strided reads the storage behind {}, which has elements that are not the tensor's", layout->to_string()));
    }
    return {b.permute(self, order), order, layout->offset};
}

Extent offset_in(const Arguments &a, const StorageOrder &storage) {
    const Extent offset = a.extent("storage_offset", storage.offset);
    if (!(storage.offset == Extent(0)) && !(offset == storage.offset)) {
        a.refuse(fmt::format("as_strided at offset {} reads before or after a tensor that begins at {} of its storage", offset.to_string(),
                             storage.offset.to_string()));
    }
    return offset - storage.offset;
}

Node *as_strided(Builder &b, const Arguments &a) {
    const StorageOrder storage = storage_order(b, a, a.tensor("self"));
    const Extents size = a.extents("size");
    const Extents stride = a.extents("stride");
    const Extent offset = offset_in(a, storage);
    const Extent available = product(sizes_of(storage.elements));
    Extent last = offset;
    bool empty = false;
    for (std::size_t i = 0; i < size.size(); ++i) {
        last = last + (size[i] - 1) * stride[i];
        empty = empty || size[i] == Extent(0);
    }
    if (!empty && last.is_constant() && available.is_constant() && last.value() >= available.value()) {
        a.refuse(fmt::format("as_strided reads element {} of a tensor that has {}", last.to_string(), available.to_string()));
    }
    return b.as_strided(storage.elements, size, stride, offset);
}

Node *as_strided_scatter(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const StorageOrder storage = storage_order(b, a, self);
    const Extents size = a.extents("size");
    const Extents stride = a.extents("stride");
    Node *place = b.full(size, offset_in(a, storage), DType::int64);
    for (std::size_t i = 0; i < size.size(); ++i) {
        Extents along(size.size(), Extent(1));
        along[i] = size[i];
        place = b.add(place, b.reshape(b.iota(size[i], 0, stride[i], DType::int64), along));
    }
    Node *source = b.broadcast(b.convert(a.tensor("src"), dtype_of(self)), size);
    Node *written = b.index_put(b.flatten(storage.elements), {b.flatten(place)}, b.flatten(source), false, false);
    Dims back(storage.order.size());
    for (std::size_t i = 0; i < back.size(); ++i) {
        back[storage.order[i]] = static_cast<int>(i);
    }
    return b.permute(b.reshape(written, sizes_of(storage.elements)), back);
}

Node *write_slice(Builder &b, Node *self, Node *source, int dim, const SliceRange &range) {
    const Extent size = sizes_of(self)[dim];
    Extents part = sizes_of(self);
    part[dim] = range.step == Extent(1) ? range.end - range.start : ceil_div(range.end - range.start, range.step);
    if (part[dim] == Extent(0)) {
        return self;
    }
    source = b.broadcast(b.convert(source, dtype_of(self)), part);
    if (range.step == Extent(1)) {
        if (range.start == Extent(0) && range.end == size) {
            return source;
        }
        return b.cat({b.slice(self, dim, 0, range.start), source, b.slice(self, dim, range.end, size)}, dim);
    }
    // Every step-th place takes the next element of the source.
    Node *place = b.sub(b.iota(size), range.start);
    Node *count = b.div_floor(place, range.step);
    Node *inside = b.logical_and(b.ge(place, 0), b.lt(place, range.end - range.start));
    Node *written = b.logical_and(inside, b.eq(b.binary("remainder", place, range.step), 0));
    Node *from = b.minimum(b.maximum(count, 0), part[dim] - 1);
    std::vector<Node *> indices(rank_of(self), nullptr);
    indices[dim] = from;
    Extents along(rank_of(self), Extent(1));
    along[dim] = size;
    return b.where(b.reshape(written, along), b.gather_nd(source, indices, false), self);
}

Node *slice_scatter(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), 0);
    const Node *source = a.tensor("src");
    const std::optional<Extent> length = rank_of(source) == rank_of(self) ? std::optional(sizes_of(source)[dim]) : std::nullopt;
    return write_slice(b, self, a.tensor("src"), dim, slice_range(a, sizes_of(self)[dim], length));
}

Node *select_scatter(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self));
    Extent index = a.extent("index");
    if (index.is_constant() && index.value() < 0) {
        index = index + sizes_of(self)[dim];
    }
    Extents part = sizes_of(self);
    part.erase(part.begin() + dim);
    Node *source = b.unsqueeze(b.broadcast(a.tensor("src"), part), dim);
    return write_slice(b, self, source, dim, {index, index + 1, 1});
}

Node *diagonal_scatter(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self);
    const std::int64_t offset = a.integer("offset", 0);
    const int dim1 = a.dim("dim1", rank, 0);
    const int dim2 = a.dim("dim2", rank, 1);
    Dims order;
    for (int i = 0; i < rank; ++i) {
        if (i != dim1 && i != dim2) {
            order.push_back(i);
        }
    }
    order.insert(order.end(), {dim1, dim2});
    Node *matrix = b.permute(self, order);
    const Extent rows = sizes_of(self)[dim1];
    Node *source = b.convert(a.tensor("src"), dtype_of(self));
    // The source runs along the rows, from the first that the diagonal crosses.
    Extents low(rank_of(source), Extent(0));
    Extents high = low;
    low.back() = std::max<std::int64_t>(-offset, 0);
    high.back() = rows - low.back() - sizes_of(source).back();
    Node *line = b.unsqueeze(b.pad(source, low, high, dtype_of(self) == DType::boolean ? Number(false) : Number(Extent(0))), rank - 1);
    Node *row = b.unsqueeze(b.iota(rows, offset, 1, DType::int64), 1);
    Node *written = b.where(b.eq(row, b.iota(sizes_of(self)[dim2])), line, matrix);
    Dims back(rank);
    for (int i = 0; i < rank; ++i) {
        back[order[i]] = i;
    }
    return b.permute(written, back);
}

}  // namespace

void add_scatter_view_rules(RuleTable &table) {
    table.add({"aten.as_strided.default", "aten.as_strided_copy.default"}, as_strided);
    table.add("aten.as_strided_scatter.default", as_strided_scatter);
    table.add("aten.slice_scatter.default", slice_scatter);
    table.add("aten.select_scatter.default", select_scatter);
    table.add("aten.diagonal_scatter.default", diagonal_scatter);
}

}  // namespace tilewright
