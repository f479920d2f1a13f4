// Loss functions.
#include <cmath>
#include <numbers>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"
#include "lowering/decompose/softmax.h"

namespace tilewright {
namespace {

/// PyTorch's numbers for `reduction`.
enum Reduction : std::int64_t { none = 0, mean = 1, sum = 2 };

Node *reduced(Builder &b, Node *loss, std::int64_t reduction) {
    const Dims dims = all_dims(rank_of(loss));
    switch (reduction) {
        case mean:
            return b.mean(loss, dims);
        case sum:
            return b.sum(loss, dims);
        default:
            return loss;
    }
}

using Terms = std::function<Node *(Builder &, Node *input, Node *target, const Arguments &)>;

/// A loss of two tensors, element by element.
Rule elementwise_loss(Terms terms, const char *input = "self", const char *target = "target") {
    return [=](Builder &b, const Arguments &a) {
        Node *x = a.tensor(input);
        Node *y = a.tensor(target);
        const DType type = result_type({x, y});
        const DType computed = compute_type(type);
        const Extents size = broadcast_shapes(sizes_of(x), sizes_of(y));
        Node *loss = terms(b, b.broadcast(b.convert(x, computed), size), b.broadcast(b.convert(y, computed), size), a);
        return b.convert(reduced(b, loss, a.integer("reduction", mean)), type);
    };
}

Node *weighted(Builder &b, Node *loss, const Arguments &a) {
    Node *weight = a.optional_tensor("weight");
    return weight ? b.mul(loss, b.convert(weight, dtype_of(loss))) : loss;
}

Node *binary_cross_entropy(Builder &b, Node *x, Node *y, const Arguments &a) {
    // Logarithms are held above -100, as in PyTorch.
    Node *log_x = b.maximum(b.log(x), -100.0);
    Node *log_rest = b.maximum(b.unary("log1p", b.neg(x)), -100.0);
    return weighted(b, b.sub(b.mul(b.sub(y, 1.0), log_rest), b.mul(y, log_x)), a);
}

Node *binary_cross_entropy_with_logits(Builder &b, Node *x, Node *y, const Arguments &a) {
    Node *log_sigmoid = b.sub(b.minimum(x, 0.0), b.unary("log1p", b.exp(b.neg(b.abs(x)))));
    Node *scaled = log_sigmoid;
    if (Node *positive = a.optional_tensor("pos_weight")) {
        Node *more = b.add(b.mul(b.sub(b.convert(positive, dtype_of(x)), 1.0), y), 1.0);
        scaled = b.mul(more, log_sigmoid);
    }
    return weighted(b, b.sub(b.mul(b.sub(1.0, y), x), scaled), a);
}

Node *smooth_l1(Builder &b, Node *x, Node *y, const Arguments &a) {
    const double beta = a.real("beta", 1);
    Node *distance = b.abs(b.sub(x, y));
    if (beta == 0) {
        return distance;
    }
    return b.where(b.lt(distance, beta), b.div(b.mul(b.mul(distance, distance), 0.5), beta), b.sub(distance, beta / 2));
}

Node *huber(Builder &b, Node *x, Node *y, const Arguments &a) {
    const double delta = a.real("delta", 1);
    Node *distance = b.abs(b.sub(x, y));
    return b.where(b.lt(distance, delta), b.mul(b.mul(distance, distance), 0.5), b.mul(b.sub(distance, delta / 2), delta));
}

Node *kl_divergence(Builder &b, Node *x, Node *y, const Arguments &a) {
    if (a.flag("log_target", false)) {
        return b.mul(b.exp(y), b.sub(y, x));
    }
    Node *entropy = b.where(b.eq(y, 0.0), 0.0, b.mul(y, b.log(y)));
    return b.sub(entropy, b.mul(y, x));
}

Node *poisson(Builder &b, Node *x, Node *y, const Arguments &a) {
    Node *loss = a.flag("log_input", true) ? b.sub(b.exp(x), b.mul(y, x)) : b.sub(x, b.mul(y, b.log(b.add(x, a.real("eps", 1e-8)))));
    if (a.flag("full", false)) {
        Node *stirling = b.add(b.sub(b.mul(y, b.log(y)), y), b.mul(b.log(b.mul(y, 2 * std::numbers::pi)), 0.5));
        loss = b.add(loss, b.where(b.le(y, 1.0), 0.0, stirling));
    }
    return loss;
}

struct Likelihood {
    Node *loss, *total_weight;
};

/// -weight[target] * input[target], where `input` has its classes in `dim`; ignored targets count nothing.
Likelihood negative_log_likelihood(Builder &b, Node *input, Node *target, Node *weight, int dim, std::int64_t ignore,
                                   std::int64_t reduction) {
    Node *valid = b.ne(target, ignore);
    Node *chosen = b.convert(b.where(valid, target, 0), DType::int64);
    Node *value = b.squeeze(b.gather(input, dim, b.unsqueeze(chosen, dim)), {dim});
    Node *share =
        weight ? b.gather_nd(b.convert(weight, dtype_of(input)), {chosen}, false) : b.full(sizes_of(chosen), 1.0, dtype_of(input));
    share = b.where(valid, share, 0.0);
    Node *loss = b.where(valid, b.neg(b.mul(value, share)), 0.0);
    const Dims dims = all_dims(rank_of(loss));
    Node *total = b.sum(share, dims);
    if (reduction == none) {
        return {loss, b.full({}, 0.0, dtype_of(input))};
    }
    Node *all = b.sum(loss, dims);
    return {reduction == mean ? b.div(all, total) : all, total};
}

int class_dim(const Node *input) { return rank_of(input) == 1 ? 0 : 1; }

Rule nll_rule(bool forward) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        Node *x = b.to_compute(self);
        const Likelihood l = negative_log_likelihood(b, x, a.tensor("target"), a.optional_tensor("weight"), class_dim(x),
                                                     a.integer("ignore_index", -100), a.integer("reduction", mean));
        if (!forward) {
            return b.convert(l.loss, dtype_of(self));
        }
        return {b.convert(l.loss, dtype_of(self)), b.convert(l.total_weight, dtype_of(self))};
    };
}

/// Targets are probabilities.
Node *soft_cross_entropy(Builder &b, Node *x, Node *target, Node *weight, int dim, double smoothing, std::int64_t reduction) {
    Node *share = b.convert(target, dtype_of(x));
    const Extent classes = sizes_of(x)[dim];
    if (smoothing > 0) {
        share = b.add(b.mul(share, 1 - smoothing), smoothing / static_cast<double>(classes.value()));
    }
    Node *terms = b.mul(log_softmax(b, x, dim), share);
    if (weight) {
        Extents shape(rank_of(x), Extent(1));
        shape[dim] = classes;
        terms = b.mul(terms, b.reshape(b.convert(weight, dtype_of(x)), shape));
    }
    Node *loss = b.neg(b.sum(terms, {dim}));
    if (reduction == mean) {
        return b.div(b.sum(loss, all_dims(rank_of(loss))), floor_div(product(sizes_of(x)), classes));
    }
    return reduced(b, loss, reduction);
}

Node *cross_entropy(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *target = a.tensor("target");
    Node *weight = a.optional_tensor("weight");
    const std::int64_t reduction = a.integer("reduction", mean);
    const std::int64_t ignore = a.integer("ignore_index", -100);
    const double smoothing = a.real("label_smoothing", 0);
    const int dim = class_dim(self);
    Node *x = b.to_compute(self);
    if (is_floating_point(dtype_of(target)) && rank_of(target) == rank_of(self)) {
        return b.convert(soft_cross_entropy(b, x, target, weight, dim, smoothing, reduction), dtype_of(self));
    }
    Node *logarithm = log_softmax(b, x, dim);
    const Likelihood plain = negative_log_likelihood(b, logarithm, target, weight, dim, ignore, reduction);
    if (smoothing == 0) {
        return b.convert(plain.loss, dtype_of(self));
    }
    // Part of each target's weight goes to all classes alike.
    Node *terms = logarithm;
    if (weight) {
        Extents shape(rank_of(x), Extent(1));
        shape[dim] = sizes_of(x)[dim];
        terms = b.mul(terms, b.reshape(b.convert(weight, dtype_of(x)), shape));
    }
    Node *smooth = b.where(b.ne(target, ignore), b.neg(b.sum(terms, {dim})), 0.0);
    if (reduction == mean) {
        Node *all = b.sum(smooth, all_dims(rank_of(smooth)));
        Node *count = b.sum(b.convert(b.ne(target, ignore), dtype_of(x)), all_dims(rank_of(target)));
        smooth = b.div(all, weight ? plain.total_weight : count);
    } else {
        smooth = reduced(b, smooth, reduction);
    }
    const double each = smoothing / static_cast<double>(sizes_of(x)[dim].value());
    return b.convert(b.add(b.mul(plain.loss, 1 - smoothing), b.mul(smooth, each)), dtype_of(self));
}

Node *margin_ranking(Builder &b, const Arguments &a) {
    const DType type = result_type({a.tensor("input1"), a.tensor("input2"), a.tensor("target")});
    const DType computed = compute_type(type);
    const auto read = [&](const char *name) { return b.convert(a.tensor(name), computed); };
    Node *loss = b.maximum(b.add(b.mul(b.neg(read("target")), b.sub(read("input1"), read("input2"))), a.real("margin", 0)), 0.0);
    return b.convert(reduced(b, loss, a.integer("reduction", mean)), type);
}

Node *norm_of(Builder &b, Node *difference, double p) {
    return b.apply("aten.linalg_vector_norm.default", {{"self", difference}, {"ord", p}, {"dim", ArgumentList{Extent(-1)}}}).front();
}

Node *triplet_margin(Builder &b, const Arguments &a) {
    const DType type = result_type({a.tensor("anchor"), a.tensor("positive"), a.tensor("negative")});
    const DType computed = compute_type(type);
    const double p = a.real("p", 2);
    const double eps = a.real("eps", 1e-6);
    const auto distance = [&](const char *x, const char *y) {
        return norm_of(b, b.add(b.sub(b.convert(a.tensor(x), computed), b.convert(a.tensor(y), computed)), eps), p);
    };
    Node *negative = distance("anchor", "negative");
    if (a.flag("swap", false)) {
        negative = b.minimum(negative, distance("positive", "negative"));
    }
    Node *loss = b.maximum(b.add(b.sub(distance("anchor", "positive"), negative), a.real("margin", 1)), 0.0);
    return b.convert(reduced(b, loss, a.integer("reduction", mean)), type);
}

Node *cosine_embedding(Builder &b, const Arguments &a) {
    Node *first = a.tensor("input1");
    Node *target = a.tensor("target");
    const DType type = dtype_of(first);
    Node *x = b.to_compute(first);
    Node *y = b.convert(a.tensor("input2"), dtype_of(x));
    const Dims dims = {rank_of(target)};
    const auto dot = [&](Node *u, Node *v) { return b.sum(b.mul(u, v), dims); };
    Node *size = b.sqrt(b.mul(b.add(dot(x, x), 1e-8), b.add(dot(y, y), 1e-8)));
    Node *cosine = b.div(dot(x, y), size);
    Node *t = b.convert(target, dtype_of(x));
    Node *apart = b.maximum(b.sub(cosine, a.real("margin", 0)), 0.0);
    Node *loss = b.add(b.where(b.eq(t, 1.0), b.sub(1.0, cosine), 0.0), b.where(b.eq(t, -1.0), apart, 0.0));
    return b.convert(reduced(b, loss, a.integer("reduction", mean)), type);
}

/// Sum over the wrong classes of max(0, margin - x[target] + x[class])^p, over the number of classes.
Node *multi_margin(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const bool single = rank_of(self) == 1;
    Node *x = b.to_compute(single ? b.unsqueeze(self, 0) : self);
    Node *target = b.reshape(b.convert(a.tensor("target"), DType::int64), {sizes_of(x)[0], 1});
    Node *over = b.maximum(b.add(b.sub(x, b.gather(x, 1, target)), a.real("margin", 1)), 0.0);
    Node *terms = a.real("p", 1) == 2 ? b.mul(over, over) : over;
    if (Node *weight = a.optional_tensor("weight")) {
        terms = b.mul(terms, b.gather_nd(b.convert(weight, dtype_of(x)), {target}, false));
    }
    terms = b.where(b.eq(target, b.iota(sizes_of(x)[1])), 0.0, terms);
    Node *loss = b.div(b.sum(terms, {1}), sizes_of(x)[1]);
    const std::int64_t reduction = a.integer("reduction", mean);
    return b.convert(reduced(b, single ? b.reshape(loss, {}) : loss, reduction), dtype_of(self));
}

}  // namespace

void add_loss_rules(RuleTable &table) {
    table.add("aten.mse_loss.default", elementwise_loss([](Builder &b, Node *x, Node *y, const Arguments &) {
                  Node *difference = b.sub(x, y);
                  return b.mul(difference, difference);
              }));
    table.add("aten.l1_loss.default", elementwise_loss([](Builder &b, Node *x, Node *y, const Arguments &) { return b.abs(b.sub(x, y)); }));
    table.add("aten.smooth_l1_loss.default", elementwise_loss(smooth_l1));
    table.add("aten.huber_loss.default", elementwise_loss(huber));
    table.add("aten.binary_cross_entropy.default", elementwise_loss(binary_cross_entropy));
    table.add("aten.binary_cross_entropy_with_logits.default", elementwise_loss(binary_cross_entropy_with_logits));
    table.add("aten.kl_div.default", elementwise_loss(kl_divergence));
    table.add("aten.poisson_nll_loss.default", elementwise_loss(poisson, "input", "target"));
    table.add("aten.soft_margin_loss.default", elementwise_loss([](Builder &b, Node *x, Node *y, const Arguments &) {
                  return b.unary("log1p", b.exp(b.mul(b.neg(y), x)));
              }));
    table.add("aten.hinge_embedding_loss.default", elementwise_loss([](Builder &b, Node *x, Node *y, const Arguments &a) {
                  Node *margin = b.maximum(b.sub(a.real("margin", 1), x), 0.0);
                  return b.add(b.where(b.eq(y, 1.0), 0.0, margin), b.where(b.eq(y, -1.0), 0.0, x));
              }));
    table.add("aten.triplet_margin_loss.default", triplet_margin);
    table.add("aten.cosine_embedding_loss.default", cosine_embedding);
    table.add("aten.multi_margin_loss.default", multi_margin);
    table.add("aten.margin_ranking_loss.default", margin_ranking);
    table.add({"aten.nll_loss.default", "aten.nll_loss_nd.default", "aten.nll_loss2d.default"}, nll_rule(false));
    table.add({"aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default"}, nll_rule(true));
    table.add("aten.cross_entropy_loss.default", cross_entropy);
}

}  // namespace tilewright
