// Normalisations.
#include <limits>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Scale and shift in the type of `x`; either may be missing. Parameters broadcast after being given `shape`.
Node *affine(Builder &b, Node *x, Node *weight, Node *bias, const Extents &shape) {
    if (weight) {
        x = b.mul(x, b.reshape(b.convert(weight, dtype_of(x)), shape));
    }
    return bias ? b.add(x, b.reshape(b.convert(bias, dtype_of(x)), shape)) : x;
}

struct Normalized {
    Node *value, *mean, *reciprocal;  ///< the statistics keep their reduced dimensions with size 1
};

/// Whether elements of this type are so coarse that their mean, rounded to float, is as good as exact beside their spread: a mean is at
/// most 2^8 times as large as the spread of numbers that differ in bfloat16.
bool is_coarse(const Node *input) { return dtype_of(input) == DType::bfloat16; }

/// (variance, mean), both with the reduced dimensions kept.
std::pair<Node *, Node *> moments(Builder &b, Node *x, const Dims &dims, bool coarse) {
    if (!coarse) {
        return b.var_mean(x, dims, 0, true);
    }
    Node *mean = b.mean(x, dims, true);
    Node *distance = b.sub(x, mean);
    return {b.mean(b.mul(distance, distance), dims, true), mean};
}

Normalized normalize(Builder &b, Node *x, const Dims &dims, double eps, bool coarse) {
    auto [variance, mean] = moments(b, x, dims, coarse);
    Node *reciprocal = b.rsqrt(b.add(variance, eps));
    return {b.mul(b.sub(x, mean), reciprocal), mean, reciprocal};
}

/// The same for rows, as exact at a large mean as the inputs are: a mean rounded to the type may be off by a good part of the spread, so
/// that the moments are taken of the distances from it. Rows are short enough to be read twice.
Normalized normalize_rows(Builder &b, Node *x, const Dims &dims, double eps) {
    Node *center = b.mean(x, dims, true);
    Node *distance = b.sub(x, center);
    Node *left = b.mean(distance, dims, true);
    Node *variance = b.sub(b.mean(b.mul(distance, distance), dims, true), b.mul(left, left));
    Node *reciprocal = b.rsqrt(b.add(b.maximum(variance, 0.0), eps));
    return {b.mul(b.sub(distance, left), reciprocal), b.add(center, left), reciprocal};
}

DType statistic_type(const Arguments &a, const Node *x) { return a.result(1) ? a.result(1)->dtype : dtype_of(x); }

Dims last_dims(int rank, std::size_t count) {
    Dims dims;
    for (int i = rank - static_cast<int>(count); i < rank; ++i) {
        dims.push_back(i);
    }
    return dims;
}

Rule layer_norm_rule(bool native) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *input = a.tensor("input");
        const Extents shape = a.extents("normalized_shape");
        Node *x = b.to_compute(input);
        const Dims dims = last_dims(rank_of(x), shape.size());
        const double eps = a.real("eps", 1e-5);
        const Normalized n = is_coarse(input) ? normalize(b, x, dims, eps, true) : normalize_rows(b, x, dims, eps);
        Node *out = b.convert(affine(b, n.value, a.optional_tensor("weight"), a.optional_tensor("bias"), shape), dtype_of(input));
        if (!native) {
            return out;
        }
        const DType type = statistic_type(a, x);
        return {out, b.convert(n.mean, type), b.convert(n.reciprocal, type)};
    };
}

Rule rms_norm_rule(bool fused) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *input = a.tensor("input");
        const Extents shape = a.extents("normalized_shape");
        Node *x = b.to_compute(input);
        const double smallest =
            dtype_of(x) == DType::float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
        Node *square = b.mean(b.mul(x, x), last_dims(rank_of(x), shape.size()), true);
        Node *reciprocal = b.rsqrt(b.add(square, a.real("eps", smallest)));
        Node *weight = a.optional_tensor("weight");
        Node *out = affine(b, b.mul(x, reciprocal), weight, nullptr, shape);
        const DType type = dtype_of(input);
        if (!fused) {
            return b.convert(out, type);
        }
        return {b.convert(out, type), b.convert(reciprocal, statistic_type(a, x))};
    };
}

/// Channels lie in dimension 1.
Extents channel_shape(const Node *x) {
    Extents shape(rank_of(x), Extent(1));
    shape[1] = sizes_of(x)[1];
    return shape;
}

Dims all_but_channels(const Node *x) {
    Dims dims = all_dims(rank_of(x));
    dims.erase(dims.begin() + 1);
    return dims;
}

/// With fixed statistics: x * scale + shift, where scale and shift are vectors that depend on weights only.
Node *normalize_by(Builder &b, Node *x, Node *mean, Node *variance, Node *weight, Node *bias, double eps) {
    const DType type = dtype_of(x);
    Node *scale = b.div(1.0, b.sqrt(b.add(b.convert(variance, type), eps)));
    if (weight) {
        scale = b.mul(scale, b.convert(weight, type));
    }
    Node *moved = b.mul(b.convert(mean, type), scale);
    Node *shift = bias ? b.sub(b.convert(bias, type), moved) : b.neg(moved);
    const Extents shape = channel_shape(x);
    return b.add(b.mul(x, b.reshape(scale, shape)), b.reshape(shift, shape));
}

struct BatchNorm {
    Node *value, *mean, *reciprocal;                ///< saved statistics: vectors, or nullptr with fixed ones
    Node *new_running_mean, *new_running_variance;  ///< nullptr where there are none
};

BatchNorm batch_norm(Builder &b, const Arguments &a, bool training) {
    Node *input = a.tensor("input");
    Node *weight = a.optional_tensor("weight");
    Node *bias = a.optional_tensor("bias");
    Node *running_mean = a.optional_tensor("running_mean");
    Node *running_variance = a.optional_tensor("running_var");
    const double eps = a.real("eps", 1e-5);
    if (rank_of(input) < 2) {  // PyTorch takes vectors where they are empty, and leaves the statistics alone
        return {input, nullptr, nullptr, running_mean, running_variance};
    }
    Node *x = b.to_compute(input);
    if (!training) {
        if (!running_mean || !running_variance) {
            a.refuse("batch norm outside training needs running_mean and running_var");
        }
        return {b.convert(normalize_by(b, x, running_mean, running_variance, weight, bias, eps), dtype_of(input)), nullptr, nullptr,
                running_mean, running_variance};
    }
    const Dims dims = all_but_channels(x);
    auto [variance, mean] = moments(b, x, dims, is_coarse(input));
    Node *reciprocal = b.rsqrt(b.add(variance, eps));
    Node *out = affine(b, b.mul(b.sub(x, mean), reciprocal), weight, bias, channel_shape(x));
    BatchNorm result{b.convert(out, dtype_of(input)), b.squeeze(mean, dims), b.squeeze(reciprocal, dims), running_mean, running_variance};
    if (running_mean && running_variance) {
        const double momentum = a.real("momentum", 0.1);
        Extent count = 1;
        for (int dim : dims) {
            count = count * sizes_of(x)[dim];
        }
        const auto blend = [&](Node *running, Node *now) {
            Node *old = b.convert(running, dtype_of(x));
            return b.convert(b.add(b.mul(now, momentum), b.mul(old, 1 - momentum)), dtype_of(running));
        };
        Node *unbiased = b.div(b.mul(b.squeeze(variance, dims), count), count - 1);
        result.new_running_mean = blend(running_mean, result.mean);
        result.new_running_variance = blend(running_variance, unbiased);
    }
    return result;
}

Node *saved(Builder &b, const Arguments &a, Node *statistic) {
    const DType type = a.result(1) ? a.result(1)->dtype : DType::float32;
    return statistic ? b.convert(statistic, type) : b.full({0}, 0.0, type);
}

void add_batch_norm(RuleTable &table) {
    table.add("aten.batch_norm.default", [](Builder &b, const Arguments &a) -> Results {
        return batch_norm(b, a, a.flag("training", false) || !a.has("running_mean")).value;
    });
    const Rule three = [](Builder &b, const Arguments &a) -> Results {
        const BatchNorm n = batch_norm(b, a, a.flag("training", false));
        return {n.value, saved(b, a, n.mean), saved(b, a, n.reciprocal)};
    };
    table.add({"aten._native_batch_norm_legit.default", "aten._native_batch_norm_legit.no_stats",
               "aten._native_batch_norm_legit_no_training.default", "aten.native_batch_norm.default"},
              three);
    // The forms without mutation also give the new running statistics.
    table.add("aten._native_batch_norm_legit_functional.default", [](Builder &b, const Arguments &a) -> Results {
        const BatchNorm n = batch_norm(b, a, a.flag("training", false));
        return {n.value, saved(b, a, n.mean), saved(b, a, n.reciprocal), n.new_running_mean, n.new_running_variance};
    });
    table.add("aten._batch_norm_with_update_functional.default", [](Builder &b, const Arguments &a) -> Results {
        const BatchNorm n = batch_norm(b, a, true);
        return {n.value,
                saved(b, a, n.mean),
                saved(b, a, n.reciprocal),
                b.full({0}, Extent(0), DType::uint8),
                n.new_running_mean,
                n.new_running_variance};
    });
    table.add("aten._batch_norm_no_update.default", [](Builder &b, const Arguments &a) -> Results {
        const BatchNorm n = batch_norm(b, a, false);
        return {n.value, saved(b, a, n.mean), saved(b, a, n.reciprocal), b.full({0}, Extent(0), DType::uint8)};
    });
}

/// Each group of channels of each sample is normalised.
Normalized group_norm(Builder &b, const Arguments &a, Node *input, const Extent &groups) {
    Node *x = b.to_compute(input);
    const Extents &size = sizes_of(input);
    const Extent channels = size[1];
    Extents grouped = {size[0], groups, floor_div(channels, groups)};
    grouped.insert(grouped.end(), size.begin() + 2, size.end());
    Dims dims = all_dims(static_cast<int>(grouped.size()));
    dims.erase(dims.begin(), dims.begin() + 2);
    const Normalized n = normalize(b, b.reshape(x, grouped), dims, a.real("eps", 1e-5), is_coarse(input));
    Node *value = affine(b, b.reshape(n.value, size), a.optional_tensor("weight"), a.optional_tensor("bias"), channel_shape(input));
    return {b.convert(value, dtype_of(input)), b.squeeze(n.mean, dims), b.squeeze(n.reciprocal, dims)};
}

Node *instance_norm(Builder &b, const Arguments &a) {
    Node *input = a.tensor("input");
    if (!a.flag("use_input_stats", true)) {
        return batch_norm(b, a, false).value;
    }
    Node *x = b.to_compute(input);
    Dims dims = all_dims(rank_of(x));
    dims.erase(dims.begin(), dims.begin() + 2);
    const Normalized n = normalize(b, x, dims, a.real("eps", 1e-5), is_coarse(input));
    return b.convert(affine(b, n.value, a.optional_tensor("weight"), a.optional_tensor("bias"), channel_shape(x)), dtype_of(input));
}

/// g * v / |v|, the norm over all dimensions but one.
Results weight_norm(Builder &b, const Arguments &a) {
    Node *v = a.tensor("v");
    const int dim = a.dim("dim", rank_of(v), 0);
    Dims dims = all_dims(rank_of(v));
    dims.erase(dims.begin() + dim);
    Node *x = b.to_compute(v);
    Node *norm = b.sqrt(b.sum(b.mul(x, x), dims, true));
    Node *value = b.mul(x, b.div(b.convert(a.tensor("g"), dtype_of(x)), norm));
    return {b.convert(value, dtype_of(v)), norm};
}

}  // namespace

void add_norm_rules(RuleTable &table) {
    table.add("aten.layer_norm.default", layer_norm_rule(false));
    table.add("aten.native_layer_norm.default", layer_norm_rule(true));
    table.add("aten.rms_norm.default", rms_norm_rule(false));
    table.add("aten._fused_rms_norm.default", rms_norm_rule(true));
    add_batch_norm(table);
    table.add("aten.group_norm.default",
              [](Builder &b, const Arguments &a) { return group_norm(b, a, a.tensor("input"), a.extent("num_groups")).value; });
    table.add("aten.native_group_norm.default", [](Builder &b, const Arguments &a) -> Results {
        const Normalized n = group_norm(b, a, a.tensor("input"), a.extent("group"));
        const DType type = statistic_type(a, n.mean);
        return {n.value, b.convert(n.mean, type), b.convert(n.reciprocal, type)};
    });
    table.add("aten.instance_norm.default", instance_norm);
    table.add("aten._weight_norm.default", [](Builder &b, const Arguments &a) { return weight_norm(b, a).front(); });
    table.add("aten._weight_norm_interface.default", weight_norm);
}

}  // namespace tilewright
