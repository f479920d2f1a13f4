// Gradients of layers: norms, tables, views, pools, convolutions and attention.
#include <cmath>
#include <numeric>

#include "lowering/decompose/attention_mask.h"
#include "lowering/decompose/backward.h"
#include "lowering/decompose/matmul.h"

namespace tilewright {
namespace {

/// Of y = w * x_hat, x_hat normalised over `dims`: rstd * (wg - mean(wg) - x_hat * mean(wg * x_hat)).
Node *through_norm(Builder &b, Node *wg, Node *x_hat, Node *rstd, const Dims &dims) {
    Node *centred = b.sub(wg, b.mean(wg, dims, true));
    return b.mul(rstd, b.sub(centred, b.mul(x_hat, b.mean(b.mul(wg, x_hat), dims, true))));
}

Node *rounded(Builder &b, Node *value, Node *like) { return like ? b.convert(value, dtype_of(like)) : nullptr; }

Results layer_norm(Builder &b, const Arguments &a) {
    Node *input = a.tensor("input");
    Node *x = b.to_compute(input);
    Node *g = b.convert(a.tensor("grad_out"), dtype_of(x));
    Node *rstd = b.convert(a.tensor("rstd"), dtype_of(x));
    Node *x_hat = b.mul(b.sub(x, b.convert(a.tensor("mean"), dtype_of(x))), rstd);
    const int rank = rank_of(x), inner = static_cast<int>(a.extents("normalized_shape").size());
    Dims rows(rank - inner), columns(inner);
    std::iota(rows.begin(), rows.end(), 0);
    std::iota(columns.begin(), columns.end(), rank - inner);
    Node *weight = a.optional_tensor("weight");
    Node *wg = weight ? b.mul(g, b.convert(weight, dtype_of(x))) : g;
    return {b.convert(through_norm(b, wg, x_hat, rstd, columns), dtype_of(input)),
            weight ? rounded(b, b.sum(b.mul(g, x_hat), rows), weight) : nullptr,
            a.optional_tensor("bias") ? rounded(b, b.sum(g, rows), a.tensor("bias")) : nullptr};
}

Results group_norm(Builder &b, const Arguments &a) {
    Node *input = a.tensor("input");
    const Extent batch = a.extent("N"), channels = a.extent("C"), pixels = a.extent("HxW"), groups = a.integer("group");
    const Extents shape{batch, groups, floor_div(channels, groups), pixels}, per_group{batch, groups, 1, 1};
    Node *x = b.reshape(b.to_compute(input), shape);
    Node *g = b.reshape(b.convert(a.tensor("grad_out"), dtype_of(x)), shape);
    const auto of_group = [&](const char *name) { return b.reshape(b.convert(a.tensor(name), dtype_of(x)), per_group); };
    Node *rstd = of_group("rstd");
    Node *x_hat = b.mul(b.sub(x, of_group("mean")), rstd);
    Node *weight = a.optional_tensor("weight");
    Node *wg = weight ? b.mul(g, b.reshape(b.convert(weight, dtype_of(x)), {1, groups, shape[2], 1})) : g;
    Node *own = b.reshape(through_norm(b, wg, x_hat, rstd, {2, 3}), sizes_of(input));
    const auto of_channel = [&](Node *value) { return b.reshape(b.sum(value, {0, 3}), {channels}); };
    return {b.convert(own, dtype_of(input)), weight ? rounded(b, of_channel(b.mul(g, x_hat)), weight) : nullptr,
            weight ? rounded(b, of_channel(g), weight) : nullptr};
}

Results batch_norm(Builder &b, const Arguments &a) {
    Node *input = a.tensor("input");
    Node *x = b.to_compute(input);
    Node *g = b.convert(a.tensor("grad_out"), dtype_of(x));
    Extents along(rank_of(x), Extent(1));
    along[1] = sizes_of(x)[1];
    Dims dims = all_dims(rank_of(x));
    dims.erase(dims.begin() + 1);
    const auto of_channel = [&](Node *value) { return b.reshape(b.convert(value, dtype_of(x)), along); };
    const bool train = a.flag("train", false);
    Node *mean = of_channel(a.tensor(train ? "save_mean" : "running_mean"));
    Node *rstd = train ? of_channel(a.tensor("save_invstd")) : b.rsqrt(b.add(of_channel(a.tensor("running_var")), a.real("eps", 1e-5)));
    Node *x_hat = b.mul(b.sub(x, mean), rstd);
    Node *weight = a.optional_tensor("weight");
    Node *wg = weight ? b.mul(g, of_channel(weight)) : g;
    Node *own = train ? through_norm(b, wg, x_hat, rstd, dims) : b.mul(wg, rstd);
    Node *like = weight ? weight : x;
    return {b.convert(own, dtype_of(input)), rounded(b, b.sum(b.mul(g, x_hat), dims), like), rounded(b, b.sum(g, dims), like)};
}

Node *embedding(Builder &b, const Arguments &a) {
    if (a.flag("scale_grad_by_freq", false)) {
        a.refuse("scale_grad_by_freq is not supported; divide by the counts outside");
    }
    Node *given = a.tensor("grad_output");
    Node *indices = b.convert(a.tensor("indices"), DType::int64);
    Node *g = b.to_compute(given);
    const Extent rows = a.extent("num_weights"), padding = a.extent("padding_idx", Extent(-1));
    g = b.where(b.unsqueeze(b.ne(indices, padding), rank_of(indices)), g, 0.0);
    Node *table = b.full({rows, sizes_of(g).back()}, 0.0, dtype_of(g));
    return b.convert(b.index_put(table, {indices, nullptr}, g, true, false), dtype_of(given));
}

Rule view_backward(const char *scatter, std::vector<const char *> arguments) {
    return [=](Builder &b, const Arguments &a) {
        Node *g = a.tensor("grad_output");
        std::vector<NamedArgument> given{{"self", b.full(a.extents("input_sizes"), Extent(0), dtype_of(g))}, {"src", g}};
        for (const char *name : arguments) {
            given.push_back({name, *a.node().find(name)});
        }
        return b.apply(scatter, std::move(given)).front();
    };
}

Node *max_pool(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *g = b.to_compute(a.tensor("grad_output"));
    const Extents &size = sizes_of(self);
    Extents planes(size.begin(), size.end() - 2), flat = planes, pooled = planes;
    flat.push_back(size[size.size() - 2] * size.back());
    pooled.push_back(sizes_of(g)[size.size() - 2] * sizes_of(g).back());
    const int dim = static_cast<int>(planes.size());
    Node *index = b.reshape(b.convert(a.tensor("indices"), DType::int64), pooled);
    Node *sums = b.scatter(b.full(flat, 0.0, dtype_of(g)), dim, index, b.reshape(g, pooled), "add");
    return b.convert(b.reshape(sums, size), dtype_of(self));
}

/// shares[i, o]: what place o of the pooled axis takes of place i.
Node *pooling_shares(Builder &b, const Extent &from, const Extent &to, DType type) {
    Node *i = b.unsqueeze(b.iota(from), 1), *o = b.iota(to);
    Node *first = b.div_floor(b.mul(o, from), to);
    Node *last = b.div_floor(b.add(b.mul(b.add(o, 1), from), to - 1), to);
    Node *inside = b.logical_and(b.ge(i, first), b.lt(i, last));
    return b.div(b.convert(inside, type), b.convert(b.sub(last, first), type));
}
Node *adaptive_average(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *g = b.to_compute(a.tensor("grad_output"));
    const Extents &size = sizes_of(self), &pooled = sizes_of(g);
    const std::size_t h = size.size() - 2, w = h + 1;
    if (pooled[h] == Extent(1) && pooled[w] == Extent(1)) {
        return b.convert(b.broadcast(b.div(g, size[h] * size[w]), size), dtype_of(self));
    }
    Node *columns = matmul(b, g, b.transpose(pooling_shares(b, size[w], pooled[w], dtype_of(g)), 0, 1));
    return b.convert(matmul(b, pooling_shares(b, size[h], pooled[h], dtype_of(g)), columns), dtype_of(self));
}

struct ConvolutionShape {
    Extents stride, padding, dilation;
    Extent groups;
};
Node *convolved(Builder &b, Node *input, Node *weight, const ConvolutionShape &s, bool transposed, const Extents &output_padding) {
    const auto list = [](const Extents &extents) { return ArgumentList(extents.begin(), extents.end()); };
    return b
        .apply("aten.convolution.default", {{"input", input},
                                            {"weight", weight},
                                            {"bias", Argument()},
                                            {"stride", list(s.stride)},
                                            {"padding", list(s.padding)},
                                            {"dilation", list(s.dilation)},
                                            {"transposed", transposed},
                                            {"output_padding", list(output_padding)},
                                            {"groups", s.groups}})
        .front();
}

/// Images are the batch's planes correlated with the gradient's: [groups * out, in, kernel...].
Node *weight_gradient(Builder &b, Node *input, Node *g, const ConvolutionShape &s, const Extents &kernel) {
    const Extents &size = sizes_of(input);
    const Extent batch = size[0], in = floor_div(size[1], s.groups);
    Extents split{batch, s.groups, in}, planes{in, s.groups * batch};
    Dims order{2, 1, 0}, swapped{1, 0};
    for (std::size_t i = 2; i < size.size(); ++i) {
        split.push_back(size[i]);
        planes.push_back(size[i]);
        order.push_back(static_cast<int>(i) + 1);
        swapped.push_back(static_cast<int>(i));
    }
    Node *images = b.reshape(b.permute(b.reshape(input, split), order), planes);
    const ConvolutionShape turned{s.dilation, s.padding, s.stride, s.groups};
    Node *value = b.permute(convolved(b, images, b.permute(g, swapped), turned, false, Extents(kernel.size(), Extent(0))), swapped);
    for (std::size_t i = 0; i < kernel.size(); ++i) {
        value = b.slice(value, static_cast<int>(i) + 2, 0, kernel[i]);  // strides may leave pixels that no kernel met
    }
    return value;
}

Results convolution(Builder &b, const Arguments &a) {
    Node *g = a.tensor("grad_output"), *input = a.tensor("input"), *weight = a.tensor("weight");
    const std::size_t spatial = rank_of(input) - 2;
    ConvolutionShape s{expand_list(a.extents("stride"), spatial, Extents(spatial, 1)),
                       expand_list(a.extents("padding"), spatial, Extents(spatial, 0)),
                       expand_list(a.extents("dilation"), spatial, Extents(spatial, 1)), a.extent("groups", Extent(1))};
    const bool transposed = a.flag("transposed", false);
    const Extents kernel(sizes_of(weight).begin() + 2, sizes_of(weight).end());
    Extents missed(spatial, Extent(0));
    for (std::size_t i = 0; i < spatial && !transposed; ++i) {
        const Extent reached = (sizes_of(g)[i + 2] - 1) * s.stride[i] - s.padding[i] * 2 + s.dilation[i] * (kernel[i] - 1) + 1;
        missed[i] = sizes_of(input)[i + 2] - reached;
    }
    Node *of_input = convolved(b, g, weight, s, !transposed, missed);
    Node *of_weight = transposed ? weight_gradient(b, g, input, s, kernel) : weight_gradient(b, input, g, s, kernel);
    Dims dims = all_dims(rank_of(g));
    dims.erase(dims.begin() + 1);
    return {of_input, b.convert(of_weight, dtype_of(weight)), b.convert(b.sum(b.to_compute(g), dims), dtype_of(g))};
}

Results attention(Builder &b, const Arguments &a) {
    if (a.real("dropout_p", 0) != 0) {
        a.refuse("dropout draws random numbers; export with dropout 0");
    }
    Node *query = a.tensor("query"), *key = a.tensor("key"), *value = a.tensor("value"), *given = a.tensor("grad_out");
    const DType type = dtype_of(query);
    const auto head = sizes_of(query).back().constant();
    const double scale = a.has("scale") ? a.real("scale") : 1 / std::sqrt(static_cast<double>(head.value_or(1)));
    const auto turned = [&](Node *n) { return b.transpose(n, rank_of(n) - 2, rank_of(n) - 1); };
    Node *scores = masked_scores(b, a, b.mul(matmul(b, query, turned(key)), scale));
    const auto column = [&](Node *n) { return b.unsqueeze(n, rank_of(n)); };
    Node *p = b.exp(b.sub(scores, column(b.convert(a.tensor("logsumexp"), dtype_of(scores)))));
    Node *g = b.to_compute(given);
    Node *own = b.sum(b.mul(g, b.to_compute(a.tensor("out"))), {rank_of(g) - 1});
    Node *slope = b.mul(p, b.sub(matmul(b, given, turned(value)), column(own)));
    slope = b.convert(b.mul(slope, scale), type);
    return {b.convert(matmul(b, slope, key), type), b.convert(matmul(b, turned(slope), query), type),
            b.convert(matmul(b, turned(b.convert(p, type)), given), type)};
}

}  // namespace

void add_layer_backward_rules(RuleTable &table) {
    table.add("aten.native_layer_norm_backward.default", layer_norm);
    table.add("aten.native_group_norm_backward.default", group_norm);
    table.add("aten.native_batch_norm_backward.default", batch_norm);
    table.add("aten.embedding_dense_backward.default", embedding);
    table.add("aten.select_backward.default", view_backward("aten.select_scatter.default", {"dim", "index"}));
    table.add("aten.slice_backward.default", view_backward("aten.slice_scatter.default", {"dim", "start", "end", "step"}));
    table.add("aten.max_pool2d_with_indices_backward.default", max_pool);
    table.add("aten._adaptive_avg_pool2d_backward.default", adaptive_average);
    table.add("aten.convolution_backward.default", convolution);
    table.add("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", attention);
}

}  // namespace tilewright
