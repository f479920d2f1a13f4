// torch.scatter and its kin; histograms.
#include <limits>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Tensors without dimensions count as one element along one.
Node *with_dimension(Builder &b, Node *a) { return rank_of(a) == 0 ? b.flatten(a) : a; }

struct Scatter {
    Node *self, *index, *source;  ///< source has the index's shape and self's type
    int dim;
};

Scatter read_scatter(Builder &b, const Arguments &a, const Operand &source) {
    Node *self = with_dimension(b, a.tensor("self"));
    Node *index = b.convert(with_dimension(b, a.tensor("index")), DType::int64);
    Node *values = nullptr;
    if (Node *given = source.node()) {
        values = b.convert(with_dimension(b, given), dtype_of(self));
        for (int i = 0; i < rank_of(values) && rank_of(values) == rank_of(index); ++i) {
            values = b.slice(values, i, 0, sizes_of(index)[i]);  // it may be larger than the index
        }
        values = rank_of(values) == rank_of(index) ? values : b.broadcast(b.reshape(values, {}), sizes_of(index));
    } else {
        values = b.full(sizes_of(index), source.number(), dtype_of(self));
    }
    return {self, index, values, a.dim("dim", rank_of(self))};
}

/// Scatters in the type that PyTorch computes in; booleans reduce as uint8.
Node *scatter_reduced(Builder &b, const Scatter &s, std::string_view reduce) {
    const DType type = dtype_of(s.self);
    if (reduce.empty()) {
        return b.scatter(s.self, s.dim, s.index, s.source, reduce);
    }
    const DType computed = type == DType::boolean ? DType::uint8 : compute_type(type);
    return b.convert(b.scatter(b.convert(s.self, computed), s.dim, s.index, b.convert(s.source, computed), reduce), type);
}

/// The names that scatter and scatter_reduce use.
std::string reduction_name(const Arguments &a, const std::string &name) {
    if (name == "sum" || name == "add") {
        return "add";
    }
    if (name == "prod" || name == "multiply") {
        return "prod";
    }
    if (name == "amax" || name == "amin" || name == "mean") {
        return name;
    }
    a.refuse(fmt::format("reduction '{}' is none of sum, prod, mean, amax, amin", name));
}

Number identity_of(std::string_view reduce, DType type) {
    if (reduce == "prod") {
        return Extent(1);
    }
    if (reduce == "add" || reduce == "mean") {
        return Extent(0);
    }
    const bool low = reduce == "amax";
    if (is_floating_point(type)) {
        const double infinity = std::numeric_limits<double>::infinity();
        return low ? -infinity : infinity;
    }
    if (!is_signed_integer(type)) {
        const int bits = type == DType::boolean ? 1 : size_in_bytes(type) * 8;
        return low ? Extent(0) : Extent(bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1);
    }
    const int bits = size_in_bytes(type) * 8;
    const std::int64_t highest = bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
    return Extent(low ? -highest - 1 : highest);
}

Node *scatter_reduce(Builder &b, const Arguments &a) {
    const std::string reduce = reduction_name(a, a.text("reduce", "sum"));
    const bool include_self = a.flag("include_self", true);
    Node *original = a.tensor("self");
    Scatter s = read_scatter(b, a, a.tensor("src"));
    const DType type = dtype_of(s.self);
    if (!include_self) {
        Node *start = b.full(sizes_of(s.index), identity_of(reduce, type), type);
        s.self = b.scatter(s.self, s.dim, s.index, start, "");
    }
    if (reduce != "mean") {
        return b.reshape(scatter_reduced(b, s, reduce), sizes_of(original));
    }
    const DType computed = compute_type(type);
    Node *sum = b.scatter(b.convert(s.self, computed), s.dim, s.index, b.convert(s.source, computed), "add");
    Node *zero_or_one = b.full(sizes_of(s.self), Extent(include_self ? 1 : 0), computed);
    Node *count = b.scatter(zero_or_one, s.dim, s.index, b.full(sizes_of(s.index), Extent(1), computed), "add");
    count = b.maximum(count, 1);
    Node *mean = is_floating_point(computed) ? b.div(sum, count) : b.div_floor(sum, count);
    return b.reshape(b.convert(mean, type), sizes_of(original));
}

Rule scatter_rule(const char *source, const char *fixed_reduction = nullptr) {
    return [=](Builder &b, const Arguments &a) {
        const Scatter s = read_scatter(b, a, a.operand(source));
        const std::string name = fixed_reduction ? fixed_reduction : a.text("reduce", "");
        return b.reshape(scatter_reduced(b, s, name.empty() ? name : reduction_name(a, name)), sizes_of(a.tensor("self")));
    };
}

/// Counts of equal bins between two ends; what lies outside, or is NaN, is not counted.
Node *histc(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const std::int64_t bins = a.integer("bins", 100);
    const DType type = dtype_of(self);
    Node *x = b.flatten(b.to_compute(self));
    const DType computed = is_floating_point(type) ? dtype_of(x) : DType::float32;
    x = b.convert(x, computed);
    const double low = a.real("min", 0);
    const double high = a.real("max", 0);
    Node *first = b.full({}, low, computed);
    Node *last = b.full({}, high, computed);
    if (low == high) {
        if (!(sizes_of(x)[0] == Extent(0))) {
            first = b.amin(x, {0});
            last = b.amax(x, {0});
        }
        Node *same = b.eq(first, last);
        first = b.where(same, b.sub(first, 1.0), first);
        last = b.where(same, b.add(last, 1.0), last);
    }
    Node *inside = b.logical_and(b.ge(x, first), b.le(x, last));
    Node *share = b.div(b.sub(b.where(inside, x, first), first), b.sub(last, first));
    Node *bin = b.minimum(b.convert(b.mul(share, static_cast<double>(bins)), DType::int64), bins - 1);
    // One place more takes what is not counted.
    Node *place = b.where(inside, bin, bins);
    Node *count = b.index_put(b.full({bins + 1}, Extent(0), computed), {place}, b.full(sizes_of(x), 1.0, computed), true, false);
    return b.convert(b.slice(count, 0, 0, bins), type);
}

Node *one_hot(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const std::int64_t classes = a.integer("num_classes", -1);
    if (classes < 0 && !a.result()) {
        a.refuse("the number of classes depends on data; pass num_classes");
    }
    const Extent count = classes >= 0 ? Extent(classes) : a.result()->sizes.back();
    if (!count.is_constant()) {
        a.refuse("the number of classes depends on data; pass num_classes");
    }
    return b.convert(b.eq(b.unsqueeze(self, rank_of(self)), b.iota(count, dtype_of(self))), DType::int64);
}

}  // namespace

void add_scatter_rules(RuleTable &table) {
    table.add({"aten.scatter.src", "aten.scatter.reduce"}, scatter_rule("src"));
    table.add({"aten.scatter.value", "aten.scatter.value_reduce"}, scatter_rule("value"));
    table.add("aten.scatter_add.default", scatter_rule("src", "add"));
    table.add("aten.scatter_reduce.two", scatter_reduce);
    table.add("aten.histc.default", histc);
    table.add("aten.one_hot.default", one_hot);
}

}  // namespace tilewright
