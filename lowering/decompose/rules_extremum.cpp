// Largest and smallest values, with and without their places.
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// A type in which values of `self` compare: booleans as uint8, small floats as float32.
Node *comparable(Builder &b, Node *self) { return dtype_of(self) == DType::boolean ? b.convert(self, DType::uint8) : b.to_compute(self); }

Rule extremum_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.convert(b.reduce(name, comparable(b, self), a.dims("dim", rank_of(self)), a.flag("keepdim", false)), dtype_of(self));
    };
}

/// A reduction along one dimension of a tensor that may have none.
Extents result_shape(const Node *self, int dim, bool keep) {
    Extents size = sizes_of(self);
    if (size.empty()) {
        return size;
    }
    if (keep) {
        size[dim] = 1;
    } else {
        size.erase(size.begin() + dim);
    }
    return size;
}

Rule place_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const bool keep = a.flag("keepdim", false);
        if (!a.has("dim")) {
            Node *place = b.arg_reduce(name, b.flatten(comparable(b, self)), 0);
            return keep ? b.reshape(place, Extents(rank_of(self), Extent(1))) : place;
        }
        const int dim = a.dim("dim", rank_of(self));
        Node *x = comparable(b, self);
        return b.reshape(b.arg_reduce(name, rank_of(x) == 0 ? b.flatten(x) : x, dim), result_shape(self, dim, keep));
    };
}

Rule with_index_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        const int dim = a.dim("dim", rank_of(self));
        const Extents size = result_shape(self, dim, a.flag("keepdim", false));
        Node *x = comparable(b, self);
        auto [value, place] = b.reduce_with_index(name, rank_of(x) == 0 ? b.flatten(x) : x, dim);
        return {b.convert(b.reshape(value, size), dtype_of(self)), b.reshape(place, size)};
    };
}

}  // namespace

void add_extremum_rules(RuleTable &table) {
    table.add({"aten.amax.default", "aten.max.default"}, extremum_rule("amax"));
    table.add({"aten.amin.default", "aten.min.default"}, extremum_rule("amin"));
    table.add("aten.aminmax.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        const Dims dims = a.has("dim") ? Dims{a.dim("dim", rank_of(self))} : all_dims(rank_of(self));
        const bool keep = a.flag("keepdim", false);
        Node *x = comparable(b, self);
        const Dims reduced = rank_of(self) == 0 ? Dims{} : dims;
        return {b.convert(b.amin(x, reduced, keep), dtype_of(self)), b.convert(b.amax(x, reduced, keep), dtype_of(self))};
    });
    table.add("aten.argmax.default", place_rule("argmax"));
    table.add("aten.argmin.default", place_rule("argmin"));
    table.add("aten.max.dim", with_index_rule("max_with_index"));
    table.add("aten.min.dim", with_index_rule("min_with_index"));
}

}  // namespace tilewright
