// The builder's views: index maps without arithmetic.
#include <algorithm>
#include <numeric>

#include "dsl/error.h"
#include "lowering/decompose/builder.h"

namespace tilewright {

Node *Builder::broadcast(Node *a, const Extents &size) {
    const int added = static_cast<int>(size.size()) - rank_of(a);
    internal_assert(added >= 0, "broadcast of {} to {}", to_string(sizes_of(a)), to_string(size));
    Dims dims(rank_of(a));
    std::iota(dims.begin(), dims.end(), added);
    return broadcast_in_dim(a, size, dims);
}

Node *Builder::broadcast_in_dim(Node *a, const Extents &size, const Dims &dims) {
    if (sizes_of(a) == size) {
        return a;
    }
    if (a->target == "prims.full") {
        return once("prims.full", {{"size", to_argument(size)}, {"value", *a->find("value")}, {"dtype", dtype_of(a)}}, dtype_of(a), size);
    }
    return once("prims.broadcast_in_dim", {{"a", a}, {"size", to_argument(size)}, {"dims", to_argument(dims)}}, dtype_of(a), size);
}

Node *Builder::reshape(Node *a, const Extents &size) {
    if (sizes_of(a) == size) {
        return a;
    }
    const Extent from = product(sizes_of(a));
    const Extent to = product(size);
    if (!may_equal(from, to)) {
        user_error("shape {} cannot be viewed as {}", to_string(sizes_of(a)), to_string(size));
    }
    if (a->target == "prims.reshape") {
        return reshape(a->input("a"), size);
    }
    if (a->target == "prims.full") {
        return broadcast_in_dim(a, size, {});
    }
    return once("prims.reshape", {{"a", a}, {"size", to_argument(size)}}, dtype_of(a), size);
}

Node *Builder::permute(Node *a, const Dims &dims) {
    if (std::is_sorted(dims.begin(), dims.end())) {
        return a;
    }
    if (a->target == "prims.permute") {
        const auto *inner = a->find("dims")->get_if<ArgumentList>();
        Dims combined;
        for (int dim : dims) {
            combined.push_back(static_cast<int>((*inner)[dim].get_if<Extent>()->value()));
        }
        return permute(a->input("a"), combined);
    }
    Extents size;
    for (int dim : dims) {
        size.push_back(sizes_of(a)[dim]);
    }
    return once("prims.permute", {{"a", a}, {"dims", to_argument(dims)}}, dtype_of(a), size);
}

Node *Builder::transpose(Node *a, int dim0, int dim1) {
    Dims dims = all_dims(rank_of(a));
    if (!dims.empty()) {
        std::swap(dims[dim0], dims[dim1]);
    }
    return permute(a, dims);
}

Node *Builder::unsqueeze(Node *a, int dim) {
    Extents size = sizes_of(a);
    size.insert(size.begin() + dim, Extent(1));
    return reshape(a, size);
}

Node *Builder::squeeze(Node *a, const Dims &dims) {
    Extents size;
    for (int i = 0; i < rank_of(a); ++i) {
        if (std::find(dims.begin(), dims.end(), i) == dims.end()) {
            size.push_back(sizes_of(a)[i]);
        }
    }
    return reshape(a, size);
}

Node *Builder::slice(Node *a, int dim, const Extent &start, const Extent &end, const Extent &step) {
    const Extent &extent = sizes_of(a)[dim];
    if (start == Extent(0) && end == extent && step == Extent(1)) {
        return a;
    }
    Extents size = sizes_of(a);
    size[dim] = step == Extent(1) ? end - start : ceil_div(end - start, step);
    if (a->target == "prims.full") {
        return broadcast_in_dim(a, size, {});
    }
    return once("prims.slice", {{"a", a}, {"dim", Extent(dim)}, {"start", start}, {"end", end}, {"step", step}}, dtype_of(a), size);
}

Node *Builder::select(Node *a, int dim, const Extent &index) { return squeeze(slice(a, dim, index, index + 1), {dim}); }

Node *Builder::flip(Node *a, const Dims &dims) {
    Dims moved;
    for (int dim : dims) {
        if (dim < rank_of(a) && !(sizes_of(a)[dim] == Extent(1))) {
            moved.push_back(dim);
        }
    }
    if (moved.empty()) {
        return a;
    }
    return once("prims.flip", {{"a", a}, {"dims", to_argument(moved)}}, dtype_of(a), sizes_of(a));
}

Node *Builder::as_strided(Node *a, const Extents &size, const Extents &stride, const Extent &offset) {
    if (offset == Extent(0) && sizes_of(a) == size && contiguous_strides(size) == stride) {
        return a;
    }
    return once("prims.as_strided", {{"a", a}, {"size", to_argument(size)}, {"stride", to_argument(stride)}, {"offset", offset}},
                dtype_of(a), size);
}

Node *Builder::cat(const std::vector<Node *> &tensors, int dim) {
    if (tensors.empty()) {
        user_error("a concatenation of no tensors has no shape; give it at least one");
    }
    std::vector<Node *> parts;
    for (Node *tensor : tensors) {
        if (!(sizes_of(tensor)[dim] == Extent(0))) {
            parts.push_back(tensor);
        }
    }
    if (parts.size() <= 1) {
        return parts.empty() ? tensors.front() : parts.front();
    }
    Extents size = sizes_of(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
        size[dim] = size[dim] + sizes_of(parts[i])[dim];
    }
    return emit("prims.cat", {{"tensors", to_argument(parts)}, {"dim", Extent(dim)}}, dtype_of(parts.front()), size);
}

Node *Builder::pad(Node *a, const Extents &low, const Extents &high, const Number &value) {
    Extents size = sizes_of(a);
    bool trivial = true;
    for (int i = 0; i < rank_of(a); ++i) {
        size[i] = size[i] + low[i] + high[i];
        trivial = trivial && low[i] == Extent(0) && high[i] == Extent(0);
    }
    if (trivial) {
        return a;
    }
    if (sizes_of(a).end() != std::find(sizes_of(a).begin(), sizes_of(a).end(), Extent(0))) {
        return full(size, value, dtype_of(a));
    }
    return emit("prims.pad", {{"a", a}, {"low", to_argument(low)}, {"high", to_argument(high)}, {"value", to_argument(value)}}, dtype_of(a),
                size);
}

}  // namespace tilewright
