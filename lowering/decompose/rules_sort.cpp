// Sorting, and what is read from sorted values.
#include <limits>

#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

std::pair<Node *, Node *> sorted(Builder &b, Node *self, int dim, bool descending, const std::optional<Extent> &count = {}) {
    if (rank_of(self) == 0) {
        return {self, b.full({}, Extent(0), DType::int64)};
    }
    return b.sort(self, dim, descending, count);
}

Results topk(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), -1);
    auto [values, places] = sorted(b, self, dim, a.flag("largest", true), a.extent("k"));
    return {values, places};
}

Extent middle(const Extent &size) { return floor_div(size - 1, 2); }

/// The value at one place of each sorted row. A row that has NaN gives the first of them where `nan_wins`.
Results order_statistic(Builder &b, Node *self, int dim, const Extent &place, bool nan_wins, bool keep) {
    auto [values, places] = sorted(b, self, dim, false, place + 1);
    if (rank_of(self) == 0) {
        return {values, places};
    }
    Node *value = b.slice(values, dim, place, place + 1);
    Node *index = b.slice(places, dim, place, place + 1);
    if (nan_wins && is_floating_point(dtype_of(self))) {
        Node *missing = b.isnan(b.to_compute(self));
        Node *any = b.any(missing, {dim}, true);
        Node *first = b.reshape(b.arg_reduce("argmax", b.convert(missing, DType::uint8), dim), sizes_of(any));
        value = b.where(any, b.full({}, std::numeric_limits<double>::quiet_NaN(), dtype_of(self)), value);
        index = b.where(any, first, index);
    }
    if (keep) {
        return {value, index};
    }
    return {b.squeeze(value, {dim}), b.squeeze(index, {dim})};
}

/// The median of what is no NaN in each row; NaN where that is nothing.
Results nanmedian(Builder &b, Node *self, int dim, bool keep) {
    const Extent half = rank_of(self) == 0 ? Extent(1) : middle(sizes_of(self)[dim]) + 1;
    auto [values, places] = sorted(b, self, dim, false, half);
    if (rank_of(self) == 0) {
        return {values, places};
    }
    Extents one = sizes_of(self);
    one[dim] = 1;
    Node *present =
        is_floating_point(dtype_of(self)) ? b.logical_not(b.isnan(b.to_compute(self))) : b.full(sizes_of(self), true, DType::boolean);
    Node *count = b.reshape(b.sum(b.convert(present, DType::int64), {dim}), one);
    Node *half_way = b.maximum(b.div_floor(b.sub(count, 1), 2), 0);
    Node *value = b.gather(values, dim, half_way);
    Node *index = b.gather(places, dim, half_way);
    if (keep) {
        return {value, index};
    }
    return {b.squeeze(value, {dim}), b.squeeze(index, {dim})};
}

}  // namespace

void add_sort_rules(RuleTable &table) {
    table.add({"aten.sort.default", "aten.sort.stable"}, [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        auto [values, places] = sorted(b, self, a.dim("dim", rank_of(self), -1), a.flag("descending", false));
        return {values, places};
    });
    table.add({"aten.argsort.default", "aten.argsort.stable"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return sorted(b, self, a.dim("dim", rank_of(self), -1), a.flag("descending", false)).second;
    });
    table.add("aten.msort.default", [](Builder &b, const Arguments &a) { return sorted(b, a.tensor("self"), 0, false).first; });
    table.add("aten.topk.default", topk);
    table.add("aten.kthvalue.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return order_statistic(b, self, a.dim("dim", rank_of(self), -1), a.extent("k") - 1, false, a.flag("keepdim", false));
    });
    table.add("aten.median.dim", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const int dim = a.dim("dim", rank_of(self));
        return order_statistic(b, self, dim, rank_of(self) ? middle(sizes_of(self)[dim]) : Extent(0), true, a.flag("keepdim", false));
    });
    table.add("aten.nanmedian.dim", [](Builder &b, const Arguments &a) {
        return nanmedian(b, a.tensor("self"), a.dim("dim", rank_of(a.tensor("self"))), a.flag("keepdim", false));
    });
    table.add("aten.nanmedian.default",
              [](Builder &b, const Arguments &a) -> Results { return nanmedian(b, b.flatten(a.tensor("self")), 0, false).front(); });
    table.add("aten.median.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = b.flatten(a.tensor("self"));
        return order_statistic(b, self, 0, middle(sizes_of(self)[0]), true, false).front();
    });
}

}  // namespace tilewright
