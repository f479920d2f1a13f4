// Gradients of activations and losses: the gradient of the result times a function of what the forward operator saw.
#include <cmath>
#include <numbers>

#include "lowering/decompose/backward.h"

namespace tilewright {
namespace {

using Slope = std::function<Node *(Builder &, Node *gradient, Node *x, const Arguments &)>;

/// Computed in float32 at least and rounded once.
Rule backward(Slope slope, const char *saved = "self", const char *gradient = "grad_output") {
    return [=](Builder &b, const Arguments &a) {
        Node *given = a.tensor(gradient);
        Node *x = b.to_compute(a.tensor(saved));
        return b.convert(slope(b, b.convert(given, dtype_of(x)), x, a), dtype_of(given));
    };
}

Node *gelu_slope(Builder &b, Node *x, bool is_tanh) {
    if (!is_tanh) {
        Node *share = b.mul(b.add(b.unary("erf", b.mul(x, std::numbers::sqrt2 / 2)), 1.0), 0.5);
        Node *density = b.mul(b.exp(b.mul(b.mul(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
        return b.add(share, b.mul(x, density));
    }
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
    Node *square = b.mul(x, x);
    Node *t = b.tanh(b.mul(b.add(x, b.mul(b.mul(square, x), cubic)), beta));
    Node *inner = b.mul(b.add(b.mul(square, 3 * cubic), 1.0), beta);
    Node *right = b.mul(b.mul(b.mul(x, 0.5), b.sub(1.0, b.mul(t, t))), inner);
    return b.add(b.mul(b.add(t, 1.0), 0.5), right);
}

Node *between(Builder &b, Node *x, double low, double high) { return b.logical_and(b.gt(x, low), b.lt(x, high)); }

Node *silu(Builder &b, Node *g, Node *x, const Arguments &) {
    Node *s = b.sigmoid(x);
    return b.mul(b.mul(g, s), b.add(b.mul(x, b.sub(1.0, s)), 1.0));
}
Node *elu(Builder &b, Node *g, Node *x, const Arguments &a) {
    const double scale = a.real("scale", 1), negative = a.real("alpha", 1) * scale, inner = a.real("input_scale", 1);
    Node *below = a.flag("is_result", false) ? b.add(x, negative) : b.mul(b.exp(b.mul(x, inner)), negative);
    return b.where(b.le(x, 0.0), b.mul(b.mul(g, inner), below), b.mul(g, scale));
}
Node *softplus(Builder &b, Node *g, Node *x, const Arguments &a) {
    Node *scaled = b.mul(x, a.real("beta", 1));
    return b.where(b.gt(scaled, a.real("threshold", 20)), g, b.mul(g, b.sigmoid(scaled)));
}
Node *mish(Builder &b, Node *g, Node *x, const Arguments &) {
    Node *t = b.tanh(b.where(b.gt(x, 20.0), x, b.unary("log1p", b.exp(x))));
    return b.mul(g, b.add(t, b.mul(b.mul(x, b.sigmoid(x)), b.sub(1.0, b.mul(t, t)))));
}
Node *hardswish(Builder &b, Node *g, Node *x, const Arguments &) {
    Node *inside = b.mul(g, b.add(b.div(x, 3.0), 0.5));
    return b.where(b.le(x, -3.0), 0.0, b.where(b.lt(x, 3.0), inside, g));
}
Node *shrunk(Builder &b, Node *g, Node *x, const Arguments &a) {
    const double lambd = a.real("lambd", 0.5);
    return b.where(b.logical_and(b.ge(x, -lambd), b.le(x, lambd)), 0.0, g);
}

Results glu(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), -1);
    const Extent half = floor_div(sizes_of(self)[dim], 2);
    Node *x = b.to_compute(b.slice(self, dim, 0, half));
    Node *s = b.sigmoid(b.to_compute(b.slice(self, dim, half, half * 2)));
    Node *first = b.mul(b.convert(a.tensor("grad_output"), dtype_of(x)), s);
    Node *second = b.mul(b.mul(first, x), b.sub(1.0, s));
    return b.cat({b.convert(first, dtype_of(self)), b.convert(second, dtype_of(self))}, dim);
}

enum Reduction : std::int64_t { none = 0, mean = 1 };

/// Of losses that compare element by element: what the gradient of one element is, before a mean divides it.
Rule loss_backward(const Slope &slope) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        Node *x = b.to_compute(self);
        Node *g = b.convert(a.tensor("grad_output"), dtype_of(x));
        Node *value = slope(b, g, x, a);
        if (a.integer("reduction", mean) == mean) {
            value = b.div(value, product(sizes_of(self)));
        }
        return b.convert(value, dtype_of(self));
    };
}

Node *difference(Builder &b, Node *x, const Arguments &a) { return b.sub(x, b.convert(a.tensor("target"), dtype_of(x))); }

/// Quadratic within `bound`, linear outside.
Node *clipped(Builder &b, Node *g, Node *x, double bound, double inside, double outside) {
    Node *steep = b.mul(g, outside);
    return b.where(b.le(x, -bound), b.neg(steep), b.where(b.ge(x, bound), steep, b.mul(b.mul(g, x), inside)));
}

/// Each row's gradient goes to the class that its target names.
Node *nll(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = rank_of(self) == 1 ? 0 : 1;
    Node *target = b.unsqueeze(b.convert(a.tensor("target"), DType::int64), dim);
    Node *g = b.to_compute(a.tensor("grad_output"));
    const std::int64_t reduction = a.integer("reduction", mean);
    if (reduction == mean) {
        g = b.div(g, b.convert(a.tensor("total_weight"), dtype_of(g)));
    } else if (reduction == none) {
        g = b.unsqueeze(g, dim);
    }
    Extents along(rank_of(self), Extent(1));
    along[dim] = sizes_of(self)[dim];
    Node *classes = b.reshape(b.iota(sizes_of(self)[dim]), along);
    Node *hit = b.logical_and(b.eq(classes, target), b.ne(target, a.extent("ignore_index", Extent(-100))));
    if (Node *weight = a.optional_tensor("weight")) {
        g = b.mul(g, b.reshape(b.convert(weight, dtype_of(g)), along));
    }
    return b.convert(b.broadcast(b.where(hit, b.neg(g), 0.0), sizes_of(self)), dtype_of(self));
}

}  // namespace

void add_pointwise_backward_rules(RuleTable &table) {
    table.add("aten.threshold_backward.default",
              backward([](Builder &b, Node *g, Node *x, const Arguments &a) { return b.where(b.le(x, a.number("threshold")), 0.0, g); }));
    table.add("aten.gelu_backward.default", backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  return b.mul(g, gelu_slope(b, x, a.text("approximate", "none") == "tanh"));
              }));
    table.add("aten.silu_backward.default", backward(silu));
    table.add("aten.sigmoid_backward.default",
              backward([](Builder &b, Node *g, Node *y, const Arguments &) { return b.mul(g, b.mul(b.sub(1.0, y), y)); }, "output"));
    table.add("aten.tanh_backward.default",
              backward([](Builder &b, Node *g, Node *y, const Arguments &) { return b.mul(g, b.sub(1.0, b.mul(y, y))); }, "output"));
    table.add("aten.leaky_relu_backward.default", backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  return b.where(b.gt(x, 0.0), g, b.mul(g, a.number("negative_slope")));
              }));
    table.add("aten.elu_backward.default", backward(elu, "self_or_result"));
    table.add("aten.hardtanh_backward.default", backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  return b.where(between(b, x, a.real("min_val"), a.real("max_val")), g, 0.0);
              }));
    table.add("aten.hardsigmoid_backward.default",
              backward([](Builder &b, Node *g, Node *x, const Arguments &) { return b.where(between(b, x, -3, 3), b.div(g, 6.0), 0.0); }));
    table.add("aten.hardswish_backward.default", backward(hardswish));
    table.add("aten.softplus_backward.default", backward(softplus));
    table.add("aten.mish_backward.default", backward(mish));
    table.add("aten.log_sigmoid_backward.default",
              backward([](Builder &b, Node *g, Node *x, const Arguments &) { return b.mul(g, b.sigmoid(b.neg(x))); }));
    table.add("aten.hardshrink_backward.default", backward(shrunk, "self", "grad_out"));
    table.add("aten.softshrink_backward.default", backward(shrunk));
    table.add("aten.glu_backward.default", glu);
    table.add("aten.native_dropout_backward.default", [](Builder &b, const Arguments &a) {
        Node *g = b.to_compute(a.tensor("grad_output"));
        Node *kept = b.mul(g, b.convert(a.tensor("mask"), dtype_of(g)));
        return b.convert(b.mul(kept, a.real("scale")), dtype_of(a.tensor("grad_output")));
    });
    table.add("aten.mse_loss_backward.default",
              loss_backward([](Builder &b, Node *g, Node *x, const Arguments &a) { return b.mul(g, b.mul(difference(b, x, a), 2.0)); }));
    table.add("aten.smooth_l1_loss_backward.default", loss_backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  const double beta = a.real("beta", 1);
                  return clipped(b, g, difference(b, x, a), beta, beta == 0 ? 0 : 1 / beta, 1);
              }));
    table.add("aten.huber_loss_backward.default", loss_backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  const double delta = a.real("delta", 1);
                  return clipped(b, g, difference(b, x, a), delta, 1, delta);
              }));
    table.add("aten.binary_cross_entropy_backward.default", loss_backward([](Builder &b, Node *g, Node *x, const Arguments &a) {
                  Node *value = b.div(b.mul(g, difference(b, x, a)), b.maximum(b.mul(b.sub(1.0, x), x), 1e-12));
                  Node *weight = a.optional_tensor("weight");
                  return weight ? b.mul(value, b.convert(weight, dtype_of(value))) : value;
              }));
    table.add({"aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default"}, nll);
}

}  // namespace tilewright
