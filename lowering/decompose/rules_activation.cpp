// Activation functions.
#include <cmath>
#include <numbers>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

using Function = std::function<Node *(Builder &, Node *, const Arguments &)>;

/// A function of one floating-point value, computed in float32 at least and rounded once.
Rule activation(Function function, const char *argument = "self") {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor(argument);
        return b.convert(function(b, b.to_compute(self), a), dtype_of(self));
    };
}

Node *gelu(Builder &b, Node *x, const Arguments &a) {
    if (a.text("approximate", "none") == "tanh") {
        const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
        Node *cube = b.mul(b.mul(x, x), x);
        Node *inner = b.mul(b.add(x, b.mul(cube, 0.044715)), beta);
        return b.mul(b.mul(x, 0.5), b.add(b.tanh(inner), 1.0));
    }
    return b.mul(b.mul(x, 0.5), b.add(b.unary("erf", b.mul(x, std::numbers::sqrt2 / 2)), 1.0));
}

Node *relu6_of(Builder &b, Node *x) { return b.minimum(b.maximum(x, 0.0), 6.0); }

Node *elu(Builder &b, Node *x, double alpha, double scale, double input_scale) {
    Node *negative = b.mul(b.unary("expm1", b.mul(x, input_scale)), alpha * scale);
    return b.where(b.le(x, 0.0), negative, b.mul(x, scale));
}

Node *softplus(Builder &b, Node *x, double beta, double threshold) {
    Node *scaled = b.mul(x, beta);
    return b.where(b.gt(scaled, threshold), x, b.div(b.unary("log1p", b.exp(scaled)), beta));
}

/// min(0, x) - log1p(exp(-|x|))
Node *log_sigmoid(Builder &b, Node *x) { return b.sub(b.minimum(x, 0.0), b.unary("log1p", b.exp(b.neg(b.abs(x))))); }

Node *prelu(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *weight = a.tensor("weight");
    Node *x = b.to_compute(self);
    Node *w = b.convert(weight, dtype_of(x));
    if (a.target() == "aten.prelu.default" && rank_of(weight) == 1 && !(sizes_of(weight)[0] == Extent(1)) && rank_of(self) > 1) {
        Extents shape(rank_of(self), Extent(1));
        shape[1] = sizes_of(weight)[0];
        w = b.reshape(w, shape);
    } else if (a.target() == "aten.prelu.default" && rank_of(weight) == 1 && rank_of(self) != 1) {
        w = b.reshape(w, {});
    }
    return b.convert(b.where(b.gt(x, 0.0), x, b.mul(w, x)), dtype_of(self));
}

Node *glu(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int dim = a.dim("dim", rank_of(self), -1);
    const Extent half = floor_div(sizes_of(self)[dim], 2);
    Node *x = b.to_compute(b.slice(self, dim, 0, half));
    Node *gate = b.to_compute(b.slice(self, dim, half, half * 2));
    return b.convert(b.mul(x, b.sigmoid(gate)), dtype_of(self));
}

}  // namespace

void add_activation_rules(RuleTable &table) {
    table.add("aten.relu.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        return dtype_of(self) == DType::boolean ? self : b.convert(b.maximum(b.to_compute(self), 0), dtype_of(self));
    });
    table.add("aten.relu6.default", activation([](Builder &b, Node *x, const Arguments &) { return relu6_of(b, x); }));
    table.add("aten.gelu.default", activation(gelu));
    table.add("aten.silu.default",
              activation([](Builder &b, Node *x, const Arguments &) { return b.div(x, b.add(b.exp(b.neg(x)), 1.0)); }));
    table.add("aten.mish.default",
              activation([](Builder &b, Node *x, const Arguments &) { return b.mul(x, b.tanh(softplus(b, x, 1, 20))); }));
    table.add("aten.hardsigmoid.default",
              activation([](Builder &b, Node *x, const Arguments &) { return b.div(relu6_of(b, b.add(x, 3.0)), 6.0); }));
    table.add("aten.hardswish.default",
              activation([](Builder &b, Node *x, const Arguments &) { return b.div(b.mul(x, relu6_of(b, b.add(x, 3.0))), 6.0); }));
    table.add("aten.hardtanh.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  return b.minimum(b.maximum(x, a.number("min_val", Number(-1.0))), a.number("max_val", Number(1.0)));
              }));
    table.add("aten.hardshrink.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  const double lambd = a.real("lambd", 0.5);
                  return b.where(b.logical_and(b.ge(x, -lambd), b.le(x, lambd)), 0.0, x);
              }));
    table.add("aten.softshrink.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  const double lambd = a.real("lambd", 0.5);
                  Node *moved = b.where(b.gt(x, 0.0), b.sub(x, lambd), b.add(x, lambd));
                  return b.where(b.le(b.abs(x), lambd), 0.0, moved);
              }));
    table.add("aten.leaky_relu.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  return b.where(b.gt(x, 0.0), x, b.mul(x, a.number("negative_slope", Number(0.01))));
              }));
    table.add("aten.elu.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  return elu(b, x, a.real("alpha", 1), a.real("scale", 1), a.real("input_scale", 1));
              }));
    table.add("aten.celu.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  const double alpha = a.real("alpha", 1);
                  return elu(b, x, alpha, 1, 1 / alpha);
              }));
    table.add("aten.selu.default", activation([](Builder &b, Node *x, const Arguments &) {
                  return elu(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
              }));
    table.add("aten.softplus.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  return softplus(b, x, a.real("beta", 1), a.real("threshold", 20));
              }));
    table.add("aten.log_sigmoid.default", activation([](Builder &b, Node *x, const Arguments &) { return log_sigmoid(b, x); }));
    table.add("aten.log_sigmoid_forward.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        Node *x = b.to_compute(self);
        return {b.convert(log_sigmoid(b, x), dtype_of(self)), b.convert(b.exp(b.neg(b.abs(x))), dtype_of(self))};
    });
    table.add("aten.softsign.default", activation([](Builder &b, Node *x, const Arguments &) { return b.div(x, b.add(b.abs(x), 1.0)); }));
    table.add("aten.tanhshrink.default", activation([](Builder &b, Node *x, const Arguments &) { return b.sub(x, b.tanh(x)); }));
    table.add("aten.threshold.default", activation([](Builder &b, Node *x, const Arguments &a) {
                  return b.where(b.le(x, a.number("threshold")), a.number("value"), x);
              }));
    table.add({"aten.prelu.default", "aten._prelu_kernel.default"}, prelu);
    table.add("aten.glu.default", glu);
    table.add({"aten.rrelu.default", "aten.rrelu_with_noise_functional.default"}, [](Builder &b, const Arguments &a) -> Results {
        if (a.flag("training", false)) {
            a.refuse("random leaky ReLU in training draws random numbers; export the model in eval mode");
        }
        const double slope = (a.real("lower", 0.125) + a.real("upper", 1.0 / 3)) / 2;
        Node *value = b.apply("aten.leaky_relu.default", {{"self", a.tensor("self")}, {"negative_slope", slope}}).front();
        return a.has("noise") ? Results{value, a.tensor("noise")} : Results(value);
    });
}

}  // namespace tilewright
