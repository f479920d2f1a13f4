// Views: shape, order of dimensions, parts.
#include <algorithm>

#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Replaces -1 by what is left of the elements.
Extents inferred_shape(const Arguments &a, const Extents &requested, const Extent &elements) {
    if (a.result()) {
        return a.result()->sizes;
    }
    Extents shape = requested;
    Extent known = 1;
    for (const Extent &extent : shape) {
        known = extent == Extent(-1) ? known : known * extent;
    }
    for (Extent &extent : shape) {
        if (extent == Extent(-1)) {
            extent = floor_div(elements, known);
        }
    }
    return shape;
}

Rule view_rule(const char *size) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.reshape(self, inferred_shape(a, a.extents(size), product(sizes_of(self))));
    };
}

Node *flatten(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self);
    const int start = a.dim("start_dim", rank, 0);
    const int end = a.dim("end_dim", rank, -1);
    if (rank == 0) {
        return b.reshape(self, {1});
    }
    Extents shape(sizes_of(self).begin(), sizes_of(self).begin() + start);
    shape.push_back(product(Extents(sizes_of(self).begin() + start, sizes_of(self).begin() + end + 1)));
    shape.insert(shape.end(), sizes_of(self).begin() + end + 1, sizes_of(self).end());
    return b.reshape(self, shape);
}

Node *unflatten(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self));
    Extents shape(sizes_of(self).begin(), sizes_of(self).begin() + dim);
    Extents parts = a.extents("sizes");
    Extent known = 1;
    for (const Extent &part : parts) {
        known = part == Extent(-1) ? known : known * part;
    }
    for (const Extent &part : parts) {
        shape.push_back(part == Extent(-1) ? floor_div(sizes_of(self)[dim], known) : part);
    }
    shape.insert(shape.end(), sizes_of(self).begin() + dim + 1, sizes_of(self).end());
    return b.reshape(self, shape);
}

Node *expand(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Extents size = a.extents("size");
    const std::size_t added = size.size() - sizes_of(self).size();
    for (std::size_t i = added; i < size.size(); ++i) {
        if (size[i] == Extent(-1)) {
            size[i] = sizes_of(self)[i - added];
        }
    }
    return b.broadcast(self, size);
}

/// Removes the dimensions of size 1 among `dims`.
Node *squeeze(Builder &b, Node *self, const Dims &dims) {
    Dims removed;
    for (int dim : dims) {
        if (dim < rank_of(self) && sizes_of(self)[dim] == Extent(1)) {
            removed.push_back(dim);
        }
    }
    return b.squeeze(self, removed);
}

Node *movedim(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self);
    Dims order(rank, -1);
    std::vector<bool> moved(rank, false);
    const auto source = a.integers("source");
    const auto destination = a.integers("destination");
    for (std::size_t i = 0; i < source.size(); ++i) {
        order[wrap_dim(destination[i], rank)] = wrap_dim(source[i], rank);
        moved[wrap_dim(source[i], rank)] = true;
    }
    int next = 0;
    for (int &place : order) {
        if (place < 0) {
            while (moved[next]) {
                ++next;
            }
            place = next++;
        }
    }
    return b.permute(self, order);
}

Node *transpose_last(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self);
    return rank < 2 ? self : b.transpose(self, rank - 2, rank - 1);
}

/// A Python index into a dimension, made non-negative.
Extent wrapped_index(const Arguments &a, const Extent &index, const Extent &size) {
    if (index.is_constant() && index.value() < 0) {
        return size + index;
    }
    if (index.is_constant() && size.is_constant() && index.value() >= size.value()) {
        a.refuse(fmt::format("index {} is out of range for a dimension of size {}", index.to_string(), size.to_string()));
    }
    return index;
}

Node *select(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self));
    return b.select(self, dim, wrapped_index(a, a.extent("index"), sizes_of(self)[dim]));
}

Node *slice(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), 0);
    const SliceRange range = slice_range(a, sizes_of(self)[dim], a.result() ? std::optional(a.result()->sizes[dim]) : std::nullopt);
    return b.slice(self, dim, range.start, range.end, range.step);
}

Node *narrow(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self));
    const Extent start = wrapped_index(a, a.extent("start"), sizes_of(self)[dim] + 1);
    return b.slice(self, dim, start, start + a.extent("length"));
}

Results split_into(Builder &b, Node *self, int dim, const Extents &lengths) {
    std::vector<Node *> parts;
    Extent start = 0;
    for (const Extent &length : lengths) {
        parts.push_back(b.slice(self, dim, start, start + length));
        start = start + length;
    }
    return parts;
}

/// Lengths of equal parts, the last one shorter.
Extents equal_parts(const Arguments &a, const Extent &size, const Extent &length) {
    if (!size.is_constant() || !length.is_constant()) {
        a.refuse(fmt::format("the number of parts of {} depends on a symbol", size.to_string()));
    }
    Extents lengths;
    const std::int64_t step = std::max<std::int64_t>(length.value(), 1);
    for (std::int64_t start = 0; start < size.value(); start += step) {
        lengths.emplace_back(std::min(step, size.value() - start));
    }
    return lengths.empty() ? Extents{size} : lengths;
}

/// Lengths as the program recorded them, or `otherwise()`.
Extents part_lengths(const Arguments &a, int dim, const std::function<Extents()> &otherwise) {
    Extents lengths;
    for (std::size_t i = 0; const TensorMeta *part = a.result(i); ++i) {
        lengths.push_back(part->sizes[dim]);
    }
    return lengths.empty() ? otherwise() : lengths;
}

Results split(Builder &b, const Arguments &a, const char *size) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), 0);
    return split_into(b, self, dim, part_lengths(a, dim, [&] { return equal_parts(a, sizes_of(self)[dim], a.extent(size)); }));
}

Results tensor_split(Builder &b, const Arguments &a, int dim) {
    Node *self = a.tensor("self");
    return split_into(b, self, dim, part_lengths(a, dim, [&]() -> Extents {
                          Extents lengths;
                          const Extent size = sizes_of(self)[dim];
                          if (a.has("sections")) {
                              const std::int64_t sections = a.integer("sections");
                              for (std::int64_t i = 0; i < sections; ++i) {
                                  lengths.emplace_back(size.value() / sections + (i < size.value() % sections ? 1 : 0));
                              }
                              return lengths;
                          }
                          std::int64_t start = 0;
                          for (std::int64_t index : a.integers("indices")) {
                              const std::int64_t end = std::clamp(index < 0 ? index + size.value() : index, start, size.value());
                              lengths.emplace_back(end - start);
                              start = end;
                          }
                          lengths.push_back(size - start);
                          return lengths;
                      }));
}

Results unbind(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), 0);
    const Extent size = sizes_of(self)[dim];
    if (!size.is_constant()) {
        a.refuse(fmt::format("the number of results is the symbolic size {}", size.to_string()));
    }
    std::vector<Node *> parts;
    for (std::int64_t i = 0; i < size.value(); ++i) {
        parts.push_back(b.select(self, dim, i));
    }
    return parts;
}

void add_parts(RuleTable &table) {
    table.add({"aten.select.int", "aten.select_copy.int"}, select);
    table.add({"aten.slice.Tensor", "aten.slice_copy.Tensor"}, slice);
    table.add({"aten.narrow.default", "aten.narrow_copy.default"}, narrow);
    table.add({"aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor"},
              [](Builder &b, const Arguments &a) { return split(b, a, "split_size"); });
    table.add(
        {"aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "aten.unsafe_split_with_sizes.default", "aten.split.sizes"},
        [](Builder &b, const Arguments &a) {
            Node *self = a.tensor("self");
            const int dim = a.dim("dim", rank_of(self), 0);
            return split_into(b, self, dim, a.extents(a.has("split_sizes") ? "split_sizes" : "split_size"));
        });
    table.add({"aten.chunk.default", "aten.unsafe_chunk.default"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const int dim = a.dim("dim", rank_of(self), 0);
        return split_into(b, self, dim, part_lengths(a, dim, [&] {
                              return equal_parts(a, sizes_of(self)[dim], ceil_div(sizes_of(self)[dim], a.extent("chunks")));
                          }));
    });
    table.add({"aten.tensor_split.sections", "aten.tensor_split.indices"},
              [](Builder &b, const Arguments &a) { return tensor_split(b, a, a.dim("dim", rank_of(a.tensor("self")), 0)); });
    table.add({"aten.hsplit.int", "aten.hsplit.array"},
              [](Builder &b, const Arguments &a) { return tensor_split(b, a, rank_of(a.tensor("self")) == 1 ? 0 : 1); });
    table.add({"aten.vsplit.int", "aten.vsplit.array"}, [](Builder &b, const Arguments &a) { return tensor_split(b, a, 0); });
    table.add({"aten.dsplit.int", "aten.dsplit.array"}, [](Builder &b, const Arguments &a) { return tensor_split(b, a, 2); });
    table.add({"aten.unbind.int", "aten.unbind_copy.int"}, unbind);
}

}  // namespace

SliceRange slice_range(const Arguments &a, const Extent &size, std::optional<Extent> length) {
    SliceRange range;
    range.step = a.extent("step", Extent(1));
    range.start = a.extent("start", Extent(0));
    Extent end = a.extent("end", size);
    const auto clamped = [&](const Extent &place) -> Extent {
        if (!place.is_constant()) {
            return place;
        }
        if (size.is_constant()) {
            const std::int64_t value = place.value() < 0 ? place.value() + size.value() : place.value();
            return std::clamp<std::int64_t>(value, 0, size.value());
        }
        return place.value() < 0 ? size + place : place;
    };
    range.start = clamped(range.start);
    if (length) {
        range.end = *length == Extent(0) ? range.start : range.start + (*length - 1) * range.step + 1;
        return range;
    }
    end = clamped(end);
    range.end = size.is_constant() || !end.is_constant() ? end : min(end, size);
    if (range.start.is_constant() && range.end.is_constant() && range.end.value() < range.start.value()) {
        range.end = range.start;
    }
    return range;
}

void add_view_rules(RuleTable &table) {
    table.add({"aten.view.default", "aten._unsafe_view.default", "aten._reshape_alias.default", "aten.view_copy.default",
               "aten._reshape_copy.default"},
              view_rule("size"));
    table.add("aten.reshape.default", view_rule("shape"));
    table.add("aten.view.dtype", [](Builder &, const Arguments &a) -> Results {
        if (a.dtype("dtype") != dtype_of(a.tensor("self"))) {
            a.refuse("reading the bits of one type as another is not supported; convert with to() instead");
        }
        return a.tensor("self");
    });
    table.add({"aten.view_as.default", "aten.reshape_as.default"},
              [](Builder &b, const Arguments &a) { return b.reshape(a.tensor("self"), sizes_of(a.tensor("other"))); });
    table.add("aten.flatten.using_ints", flatten);
    table.add("aten.ravel.default", [](Builder &b, const Arguments &a) { return b.flatten(a.tensor("self")); });
    table.add("aten.unflatten.int", unflatten);
    table.add({"aten.expand.default", "aten.expand_copy.default", "aten.broadcast_to.default"}, expand);
    table.add("aten.expand_as.default",
              [](Builder &b, const Arguments &a) { return b.broadcast(a.tensor("self"), sizes_of(a.tensor("other"))); });
    table.add({"aten.squeeze.default", "aten.squeeze_copy.default"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return squeeze(b, self, all_dims(rank_of(self)));
    });
    table.add({"aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.dims", "aten.squeeze_copy.dim"},
              [](Builder &b, const Arguments &a) {
                  Node *self = a.tensor("self");
                  Dims dims;
                  for (std::int64_t dim : a.integers("dim")) {
                      dims.push_back(wrap_dim(dim, rank_of(self)));
                  }
                  return squeeze(b, self, dims);
              });
    table.add({"aten.unsqueeze.default", "aten.unsqueeze_copy.default"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.unsqueeze(self, wrap_dim(a.integer("dim"), rank_of(self) + 1));
    });
    table.add({"aten.permute.default", "aten.permute_copy.default"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        Dims dims;
        for (std::int64_t dim : a.integers("dims")) {
            dims.push_back(wrap_dim(dim, rank_of(self)));
        }
        return b.permute(self, dims);
    });
    table.add({"aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default", "aten.transpose_copy.int"},
              [](Builder &b, const Arguments &a) {
                  Node *self = a.tensor("self");
                  const char *first = a.has("dim0") ? "dim0" : "axis0";
                  const char *second = a.has("dim1") ? "dim1" : "axis1";
                  return b.transpose(self, a.dim(first, rank_of(self)), a.dim(second, rank_of(self)));
              });
    table.add(
        {"aten.t.default", "aten.mT.default", "aten.adjoint.default", "aten.mH.default", "aten.matrix_H.default", "aten.t_copy.default"},
        transpose_last);
    table.add({"aten.numpy_T.default"}, [](Builder &b, const Arguments &a) {
        Dims dims = all_dims(rank_of(a.tensor("self")));
        std::reverse(dims.begin(), dims.end());
        return b.permute(a.tensor("self"), dims);
    });
    table.add({"aten.movedim.intlist", "aten.movedim.int", "aten.moveaxis.intlist", "aten.moveaxis.int"}, movedim);
    add_parts(table);
}

}  // namespace tilewright
