// Running sums, products and extrema; differences.
#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

Rule running_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        DType type = a.dtype("dtype").value_or(is_floating_point(dtype_of(self)) ? dtype_of(self) : DType::int64);
        if (name == "logcumsumexp") {
            type = to_floating(dtype_of(self));
        }
        Node *x = b.convert(b.convert(self, type), compute_type(type));
        return b.convert(b.scan(name, x, a.dim("dim", rank_of(self))), type);
    };
}

Rule running_extremum_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        Node *x = dtype_of(self) == DType::boolean ? b.convert(self, DType::uint8) : b.to_compute(self);
        auto [value, place] = b.scan_with_index(name, x, a.dim("dim", rank_of(self)));
        return {b.convert(value, dtype_of(self)), place};
    };
}

Node *difference(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), -1);
    if (a.integer("n", 1) == 0) {
        return self;
    }
    std::vector<Node *> parts;
    for (const char *name : {"prepend", "self", "append"}) {
        if (Node *part = a.optional_tensor(name)) {
            parts.push_back(part);
        }
    }
    Node *value = parts.size() == 1 ? self : b.apply("aten.cat.default", {{"tensors", to_argument(parts)}, {"dim", Extent(dim)}}).front();
    for (std::int64_t n = a.integer("n", 1); n > 0; --n) {
        const Extent size = sizes_of(value)[dim];
        if (size == Extent(0)) {
            return value;
        }
        const DType type = dtype_of(value);
        Node *later = b.slice(value, dim, 1, size);
        Node *earlier = b.slice(value, dim, 0, size - 1);
        value = type == DType::boolean ? b.binary("bitwise_xor", later, earlier)
                                       : b.convert(b.sub(b.to_compute(later), b.to_compute(earlier)), type);
    }
    return value;
}

/// Trapezoidal rule along a dimension, with equal or given distances.
Node *trapezoid(Builder &b, const Arguments &a, bool cumulative) {
    Node *y = a.tensor("y");
    const int dim = a.dim("dim", rank_of(y), -1);
    const Extent size = sizes_of(y)[dim];
    // Sums and products of integers wrap in their own type before they are added up.
    Node *x = a.optional_tensor("x");
    const DType common = x ? result_type({y, x}) : dtype_of(y);
    const DType type = to_floating(common);
    Node *v = b.convert(y, compute_type(common));
    Node *areas = b.add(b.slice(v, dim, 1, size), b.slice(v, dim, 0, size - 1));
    if (x) {
        Node *places = b.convert(x, dtype_of(v));
        if (rank_of(places) == 1) {
            Extents along(rank_of(y), Extent(1));
            along[dim] = size;
            places = b.reshape(places, along);
        }
        const int place_dim = rank_of(places) - (rank_of(y) - dim);
        areas = b.mul(areas, b.sub(b.slice(places, place_dim, 1, size), b.slice(places, place_dim, 0, size - 1)));
    }
    areas = b.mul(b.convert(areas, compute_type(type)), x ? 0.5 : a.real("dx", 1) / 2);
    return b.convert(cumulative ? b.scan("cumsum", areas, dim) : b.sum(areas, {dim}), type);
}

}  // namespace

void add_scan_rules(RuleTable &table) {
    table.add("aten.cumsum.default", running_rule("cumsum"));
    table.add("aten.cumprod.default", running_rule("cumprod"));
    table.add("aten.logcumsumexp.default", running_rule("logcumsumexp"));
    table.add("aten.linalg_vander.default", [](Builder &b, const Arguments &a) -> Results {
        Node *x = a.tensor("x");
        const Extent columns = a.optional_integer("N") ? Extent(*a.optional_integer("N")) : sizes_of(x).back();
        Extents size = sizes_of(x);
        size.push_back(columns - 1);
        Node *factors = b.broadcast(b.unsqueeze(x, rank_of(x)), size);
        size.back() = 1;
        Node *powers = b.cat({b.full(size, Extent(1), dtype_of(x)), factors}, rank_of(x));
        return b.apply("aten.cumprod.default", {{"self", powers}, {"dim", Extent(-1)}});
    });
    table.add("aten.cummax.default", running_extremum_rule("cummax"));
    table.add("aten.cummin.default", running_extremum_rule("cummin"));
    table.add("aten.diff.default", difference);
    table.add({"aten.trapezoid.x", "aten.trapezoid.dx", "aten.trapz.x", "aten.trapz.dx"},
              [](Builder &b, const Arguments &a) { return trapezoid(b, a, false); });
    table.add({"aten.cumulative_trapezoid.x", "aten.cumulative_trapezoid.dx"},
              [](Builder &b, const Arguments &a) { return trapezoid(b, a, true); });
}

}  // namespace tilewright
