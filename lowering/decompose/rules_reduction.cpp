// Sums, products, means, moments and norms.
#include <cmath>
#include <limits>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Sums of booleans and integers are int64.
DType sum_type(const Arguments &a, const Node *self) {
    if (std::optional<DType> type = a.dtype("dtype")) {
        return *type;
    }
    return is_floating_point(dtype_of(self)) ? dtype_of(self) : DType::int64;
}

bool keepdim(const Arguments &a) { return a.flag("keepdim", false); }

Rule fold_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const DType type = sum_type(a, self);
        const DType computed = compute_type(type);
        const Dims dims = a.dims("dim", rank_of(self));
        if (type == DType::boolean) {
            Node *truth = b.convert(self, type);
            return b.reduce(name == "sum" ? "any" : "all", truth, dims, keepdim(a));
        }
        // A type that was asked for is rounded to before the reduction.
        Node *x = b.convert(a.has("dtype") ? b.convert(self, type) : self, computed);
        return b.convert(b.reduce(name, x, dims, keepdim(a)), type);
    };
}

Node *mean(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const DType type = a.dtype("dtype").value_or(dtype_of(self));
    Node *x = b.convert(b.convert(self, type), compute_type(type));
    return b.convert(b.mean(x, a.dims("dim", rank_of(self)), keepdim(a)), type);
}

Node *nansum(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const DType type = sum_type(a, self);
    Node *x = b.convert(self, compute_type(type));
    if (is_floating_point(dtype_of(self))) {
        x = b.where(b.isnan(b.to_compute(self)), 0, x);
    }
    return b.convert(b.sum(x, a.dims("dim", rank_of(self)), keepdim(a)), type);
}

Rule truth_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        Dims dims = a.dims("dim", rank_of(self));
        if (a.has("dim") && rank_of(self) > 0 && a.integers("dim").empty()) {
            dims.clear();  // an empty list of dims reduces nothing here
        }
        Node *truth = b.reduce(name, b.convert(self, DType::boolean), dims, keepdim(a));
        return dtype_of(self) == DType::uint8 ? b.convert(truth, DType::uint8) : truth;
    };
}

double correction_of(const Arguments &a) {
    if (a.has("correction")) {
        return a.real("correction");
    }
    return a.flag("unbiased", true) ? 1 : 0;
}

/// var and std, alone or with the mean.
Rule moment_rule(bool root, bool with_mean) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        auto [variance, mean] = b.var_mean(b.to_compute(self), a.dims("dim", rank_of(self)), correction_of(a), keepdim(a));
        Node *spread = b.convert(root ? b.sqrt(variance) : variance, dtype_of(self));
        if (!with_mean) {
            return spread;
        }
        return {spread, b.convert(mean, dtype_of(self))};
    };
}

Node *vector_norm(Builder &b, Node *self, double order, const Dims &dims, bool keep, DType type) {
    Node *x = b.convert(b.convert(self, type), compute_type(type));
    const double infinity = std::numeric_limits<double>::infinity();
    Node *size = order == 2 ? nullptr : b.abs(x);
    Node *result = nullptr;
    if (order == 2) {
        result = b.sqrt(b.sum(b.mul(x, x), dims, keep));
    } else if (order == 0) {
        result = b.sum(b.convert(b.ne(x, 0.0), dtype_of(x)), dims, keep);
    } else if (order == 1) {
        result = b.sum(size, dims, keep);
    } else if (order == infinity) {
        result = b.amax(size, dims, keep);
    } else if (order == -infinity) {
        result = b.amin(size, dims, keep);
    } else {
        result = b.binary("pow", b.sum(b.binary("pow", size, order), dims, keep), 1 / order);
    }
    return b.convert(result, type);
}

Rule norm_rule(const char *order) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const DType type = a.dtype("dtype").value_or(dtype_of(self));
        return vector_norm(b, self, order ? a.real(order, 2) : 2, a.dims("dim", rank_of(self)), keepdim(a), type);
    };
}

/// The norms of torch.linalg.norm and matrix_norm that need no singular values.
Node *linalg_norm(Builder &b, const Arguments &a, bool of_matrix) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self);
    const DType type = a.dtype("dtype").value_or(dtype_of(self));
    const bool keep = keepdim(a);
    Dims dims = of_matrix && !a.has("dim") ? Dims{rank - 2, rank - 1} : a.dims("dim", rank);
    const Argument *order = a.node().find("ord");
    const bool named = order && order->get_if<std::string>();
    const bool none = !of_matrix && !a.has("ord");
    const std::string name = named ? *order->get_if<std::string>() : of_matrix && !a.has("ord") ? "fro" : "";
    if (none || name == "fro") {
        return vector_norm(b, self, 2, dims, keep, type);
    }
    if (!named && dims.size() == 1) {
        return vector_norm(b, self, a.real("ord"), dims, keep, type);
    }
    const double number = named ? 0 : a.real("ord");
    if (named || dims.size() != 2 || std::abs(number) == 2) {
        a.refuse("this matrix norm needs singular values, which are not supported; the norms 'fro', 1, -1, inf and -inf are");
    }
    // The largest or smallest sum over columns (1) or rows (inf).
    const bool columns = std::abs(number) == 1;
    Node *x = b.abs(b.convert(b.convert(self, type), compute_type(type)));
    Node *sums = b.sum(x, {columns ? dims[0] : dims[1]}, true);
    Node *result = b.reduce(number > 0 ? "amax" : "amin", sums, {columns ? dims[1] : dims[0]}, true);
    return b.convert(keep ? result : b.squeeze(result, dims), type);
}

/// Sums what broadcasting would have repeated.
Node *sum_to_size(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const Extents size = a.extents("size");
    const int added = rank_of(self) - static_cast<int>(size.size());
    Dims summed;
    for (int i = 0; i < rank_of(self); ++i) {
        if (i < added || (size[i - added] == Extent(1) && !(sizes_of(self)[i] == Extent(1)))) {
            summed.push_back(i);
        }
    }
    if (summed.empty()) {
        return b.reshape(self, size);
    }
    const DType type = is_floating_point(dtype_of(self)) ? dtype_of(self) : DType::int64;
    return b.reshape(b.convert(b.sum(b.convert(self, compute_type(type)), summed), type), size);
}

/// Slices along a dimension whose norm exceeds a limit are scaled down to it.
Node *renorm(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self));
    const double limit = a.real("maxnorm");
    Dims dims = all_dims(rank_of(self));
    dims.erase(dims.begin() + dim);
    Node *x = b.to_compute(self);
    Node *norm = vector_norm(b, x, a.real("p"), dims, true, dtype_of(x));
    Node *factor = b.where(b.gt(norm, limit), b.div(limit, b.add(norm, 1e-7)), 1.0);
    return b.convert(b.mul(x, factor), dtype_of(self));
}

}  // namespace

void add_reduction_rules(RuleTable &table) {
    table.add({"aten.sum.default", "aten.sum.dim_IntList"}, fold_rule("sum"));
    table.add({"aten.prod.default", "aten.prod.dim_int"}, fold_rule("prod"));
    table.add({"aten.mean.default", "aten.mean.dim"}, mean);
    table.add("aten.nansum.default", nansum);
    table.add("aten.nanmean.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const Dims dims = a.dims("dim", rank_of(self));
        Node *x = b.to_compute(self);
        Node *missing = b.isnan(x);
        Node *count = b.sum(b.convert(b.logical_not(missing), dtype_of(x)), dims, keepdim(a));
        return b.convert(b.div(b.sum(b.where(missing, 0.0, x), dims, keepdim(a)), count), a.dtype("dtype").value_or(dtype_of(self)));
    });
    table.add({"aten.any.default", "aten.any.dim", "aten.any.dims"}, truth_rule("any"));
    table.add({"aten.all.default", "aten.all.dim", "aten.all.dims"}, truth_rule("all"));
    table.add({"aten.count_nonzero.default", "aten.count_nonzero.dim_IntList"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.sum(b.convert(b.convert(self, DType::boolean), DType::int64), a.dims("dim", rank_of(self)));
    });
    table.add({"aten.var.default", "aten.var.dim", "aten.var.correction"}, moment_rule(false, false));
    table.add({"aten.std.default", "aten.std.dim", "aten.std.correction"}, moment_rule(true, false));
    table.add({"aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction"}, moment_rule(false, true));
    table.add({"aten.std_mean.default", "aten.std_mean.dim", "aten.std_mean.correction"}, moment_rule(true, true));
    table.add("aten.linalg_vector_norm.default", norm_rule("ord"));
    table.add({"aten.norm.Scalar", "aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dtype", "aten.norm.ScalarOpt_dim_dtype"},
              norm_rule("p"));
    table.add({"aten.linalg_norm.default", "aten.linalg_norm.ord_str"},
              [](Builder &b, const Arguments &a) { return linalg_norm(b, a, false); });
    table.add({"aten.linalg_matrix_norm.default", "aten.linalg_matrix_norm.str_ord"},
              [](Builder &b, const Arguments &a) { return linalg_norm(b, a, true); });
    table.add("aten.sum_to_size.default", sum_to_size);
    table.add("aten.renorm.default", renorm);
    table.add("aten.frobenius_norm.dim", norm_rule(nullptr));
    table.add("aten.logsumexp.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const DType type = to_floating(dtype_of(self));
        Node *x = b.convert(self, compute_type(type));
        return b.convert(b.logsumexp(x, a.dims("dim", rank_of(self)), keepdim(a)), type);
    });
    table.add("aten.dist.default", [](Builder &b, const Arguments &a) {
        Node *distance = b.apply("aten.sub.Tensor", {{"self", a.tensor("self")}, {"other", a.tensor("other")}}).front();
        return vector_norm(b, distance, a.real("p", 2), all_dims(rank_of(distance)), false, dtype_of(distance));
    });
}

}  // namespace tilewright
