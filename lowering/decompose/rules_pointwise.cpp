// Elementwise arithmetic and functions.
#include <cmath>
#include <numbers>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

using Operands = std::vector<Operand>;

Number product_of(const Number &a, const Number &b) {
    if (std::holds_alternative<double>(a) || std::holds_alternative<double>(b)) {
        return to_double(a) * to_double(b);
    }
    const auto integer = [](const Number &n) {
        return std::holds_alternative<bool>(n) ? Extent(std::get<bool>(n) ? 1 : 0) : std::get<Extent>(n);
    };
    return integer(a) * integer(b);
}

bool is_boolean(const Operand &operand) { return operand.node() && dtype_of(operand.node()) == DType::boolean; }

/// a + alpha * b
Node *add_scaled(Builder &b, const Operand &left, const Operand &right, const Number &alpha) {
    if (is_boolean(left) || is_boolean(right)) {
        if (is_zero(alpha)) {
            return b.binary("bitwise_or", left, b.binary("bitwise_and", right, false));
        }
        return b.binary("bitwise_or", left, right);
    }
    if (is_one(alpha)) {
        return b.add(left, right);
    }
    if (!right.node()) {
        return b.add(left, product_of(alpha, right.number()));
    }
    return b.add(left, b.mul(right, alpha));
}

Rule binary_rule(std::string name, Promotion promotion, const char *first = "self", const char *second = "other") {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand(first), a.operand(second)}, promotion,
                           [&](Builder &b, const Operands &v) { return b.binary(name, v[0], v[1]); });
    };
}

/// Operators that booleans have as well: and/or in place of arithmetic.
Rule binary_or_boolean_rule(std::string name, std::string boolean_name) {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self"), a.operand("other")}, Promotion::common, [&](Builder &b, const Operands &v) {
            return b.binary(is_boolean(v[0]) || is_boolean(v[1]) ? boolean_name : name, v[0], v[1]);
        });
    };
}

Node *divide(Builder &b, const Operand &left, const Operand &right, const std::string &mode) {
    const Promotion promotion = mode.empty() ? Promotion::floating : Promotion::common;
    const DType type = result_type({left, right});
    return elementwise(b, {left, right}, promotion, [&](Builder &b, const Operands &v) {
        if (mode == "trunc" && compute_type(type) != type) {
            // PyTorch rounds the quotient to the type before it cuts off the fraction.
            Node *quotient = b.convert(b.div(v[0], v[1]), type);
            return b.unary("trunc", b.to_compute(quotient));
        }
        return b.binary(mode == "trunc" ? "div_trunc" : mode == "floor" ? "div_floor" : "div", v[0], v[1]);
    });
}

Node *integer_power(Builder &b, Node *base, std::int64_t exponent) {
    Node *result = base;
    for (std::int64_t i = 1; i < exponent; ++i) {
        result = b.mul(result, base);
    }
    return result;
}

/// PyTorch computes small powers by multiplication, and halves by square roots.
Node *power_of_number(Builder &b, const Arguments &a) {
    const Number exponent = a.number("exponent");
    Node *self = a.tensor("self");
    return elementwise(b, {self, exponent}, Promotion::common, [&](Builder &b, const Operands &v) -> Node * {
        Node *x = v[0].node();
        const bool floating = is_floating_point(dtype_of(x));
        if (const auto *symbolic = std::get_if<Extent>(&exponent); symbolic && !symbolic->is_constant()) {
            return b.binary("pow", x, exponent);
        }
        const double power = to_double(exponent);
        if (dtype_of(x) == DType::boolean) {
            return power == 0 ? b.full(sizes_of(x), true, DType::boolean) : x;
        }
        if (power == 0) {
            return b.full(sizes_of(x), 1.0, dtype_of(x));
        }
        if (power == 1 || power == 2 || power == 3) {
            return integer_power(b, x, static_cast<std::int64_t>(power));
        }
        if (!floating) {
            if (power < 0) {
                a.refuse("integers have no negative integer powers");
            }
            return b.binary("pow", x, exponent);
        }
        if (power == 0.5) {
            return b.sqrt(x);
        }
        if (power == -0.5) {
            return b.rsqrt(x);
        }
        if (power == -1) {
            return b.div(1.0, x);
        }
        if (power == -2) {
            return b.div(1.0, b.mul(x, x));
        }
        return b.binary("pow", x, exponent);
    });
}

Node *number_to_power(Builder &b, const Arguments &a) {
    return elementwise(b, {a.number("self"), a.tensor("exponent")}, Promotion::common, [&](Builder &b, const Operands &v) -> Node * {
        Node *exponent = v[1].node();
        if (is_one(a.number("self"))) {
            return b.full(sizes_of(exponent), 1.0, dtype_of(exponent));
        }
        if (is_floating_point(dtype_of(exponent)) && to_double(a.number("self")) == 2) {
            return b.unary("exp2", exponent);
        }
        return b.binary("pow", v[0], v[1]);
    });
}

Rule addc_rule(bool divides) {
    return [=](Builder &b, const Arguments &a) {
        const Number value = a.number("value", Number(Extent(1)));
        return elementwise(b, {a.operand("self"), a.operand("tensor1"), a.operand("tensor2")}, Promotion::common,
                           [&](Builder &b, const Operands &v) {
                               const Operand scaled = is_one(value) ? v[1] : Operand(b.mul(v[1], value));
                               return b.add(v[0], divides ? b.div(scaled, v[2]) : b.mul(scaled, v[2]));
                           });
    };
}

Node *lerp(Builder &b, const Arguments &a) {
    return elementwise(b, {a.operand("self"), a.operand("end"), a.operand("weight")}, Promotion::common,
                       [&](Builder &b, const Operands &v) -> Node * {
                           Node *difference = b.sub(v[1], v[0]);
                           const auto low = [&] { return b.add(v[0], b.mul(difference, v[2])); };
                           const auto high = [&](const Operand &rest) { return b.sub(v[1], b.mul(difference, rest)); };
                           if (!v[2].node()) {
                               const double weight = to_double(v[2].number());
                               return std::abs(weight) < 0.5 ? low() : high(1.0 - weight);
                           }
                           return b.where(b.lt(b.abs(v[2].node()), 0.5), low(), high(b.sub(1.0, v[2])));
                       });
}

Node *logaddexp(Builder &b, const Arguments &a, bool base2) {
    return elementwise(b, {a.operand("self"), a.operand("other")}, Promotion::floating, [&](Builder &b, const Operands &v) {
        // Equal infinities have no difference.
        Node *high = b.maximum(v[0], v[1]);
        Node *distance = b.neg(b.abs(b.sub(v[0], v[1])));
        Node *more = base2 ? b.mul(b.unary("log1p", b.unary("exp2", distance)), 1 / std::numbers::ln2) : b.unary("log1p", b.exp(distance));
        Node *same_infinity = b.logical_and(b.unary("isinf", b.add(v[0], b.full({}, 0.0, dtype_of(high)))), b.eq(v[0], v[1]));
        return b.where(same_infinity, high, b.add(high, more));
    });
}

/// x * log(y), 0 where x is 0 unless y is NaN.
Node *xlogy(Builder &b, const Arguments &a, std::string_view logarithm) {
    return elementwise(b, {a.operand("self"), a.operand("other")}, Promotion::floating, [&](Builder &b, const Operands &v) -> Node * {
        Node *like = v[0].node() ? v[0].node() : v[1].node();
        const auto node = [&](const Operand &o) { return o.node() ? o.node() : b.full({}, o.number(), dtype_of(like)); };
        Node *x = node(v[0]);
        Node *y = node(v[1]);
        Node *value = b.where(b.eq(x, 0.0), 0.0, b.mul(x, b.unary(logarithm, y)));
        return b.where(b.isnan(y), std::nan(""), value);
    });
}

void add_binary(RuleTable &table) {
    const auto add = [](bool subtract, const char *left, const char *right) -> Rule {
        return [=](Builder &b, const Arguments &a) {
            Number alpha = a.number("alpha", Number(Extent(1)));
            return elementwise(b, {a.operand(left), a.operand(right)}, Promotion::common, [&](Builder &b, const Operands &v) -> Node * {
                if (!subtract) {
                    return add_scaled(b, v[0], v[1], alpha);
                }
                if (is_one(alpha)) {
                    return b.sub(v[0], v[1]);
                }
                return v[1].node() ? b.sub(v[0], b.mul(v[1], alpha)) : b.sub(v[0], product_of(alpha, v[1].number()));
            });
        };
    };
    table.add({"aten.add.Tensor", "aten.add.Scalar"}, add(false, "self", "other"));
    table.add({"aten.sub.Tensor", "aten.sub.Scalar", "aten.subtract.Tensor", "aten.subtract.Scalar"}, add(true, "self", "other"));
    table.add({"aten.rsub.Tensor", "aten.rsub.Scalar"}, add(true, "other", "self"));
    table.add({"aten.mul.Tensor", "aten.mul.Scalar", "aten.multiply.Tensor", "aten.multiply.Scalar"},
              binary_or_boolean_rule("mul", "bitwise_and"));
    const Rule division = [](Builder &b, const Arguments &a) {
        return divide(b, a.operand("self"), a.operand("other"), a.text("rounding_mode", ""));
    };
    table.add({"aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.divide.Tensor",
               "aten.divide.Scalar", "aten.divide.Tensor_mode", "aten.true_divide.Tensor", "aten.true_divide.Scalar"},
              division);
    table.add({"aten.floor_divide.default", "aten.floor_divide.Scalar"},
              [](Builder &b, const Arguments &a) { return divide(b, a.operand("self"), a.operand("other"), "floor"); });
    table.add("aten.reciprocal.default", [](Builder &b, const Arguments &a) { return divide(b, 1.0, a.operand("self"), ""); });
    table.add({"aten.fmod.Tensor", "aten.fmod.Scalar"}, binary_rule("fmod", Promotion::common));
    table.add({"aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor"},
              binary_rule("remainder", Promotion::common));
    table.add({"aten.atan2.default", "aten.arctan2.default"}, binary_rule("atan2", Promotion::floating));
    table.add({"aten.copysign.Tensor", "aten.copysign.Scalar"}, binary_rule("copysign", Promotion::floating));
    table.add("aten.hypot.default", binary_rule("hypot", Promotion::common));
    table.add("aten.nextafter.default", binary_rule("nextafter", Promotion::common));
    table.add({"aten.maximum.default", "aten.max.other"}, binary_or_boolean_rule("maximum", "bitwise_or"));
    table.add({"aten.minimum.default", "aten.min.other"}, binary_or_boolean_rule("minimum", "bitwise_and"));
    table.add("aten.fmax.default", binary_or_boolean_rule("fmax", "bitwise_or"));
    table.add("aten.fmin.default", binary_or_boolean_rule("fmin", "bitwise_and"));
    table.add("aten.pow.Tensor_Scalar", power_of_number);
    table.add("aten.pow.Scalar", number_to_power);
    table.add("aten.pow.Tensor_Tensor", binary_rule("pow", Promotion::common, "self", "exponent"));
    table.add({"aten.float_power.Tensor_Scalar", "aten.float_power.Tensor_Tensor", "aten.float_power.Scalar"},
              [](Builder &b, const Arguments &a) {
                  Node *base = as_tensor(b, a.operand("self"), DType::float64);
                  return b.binary("pow", base, as_tensor(b, a.operand("exponent"), DType::float64));
              });
    table.add({"aten.xlogy.Tensor", "aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other"},
              [](Builder &b, const Arguments &a) { return xlogy(b, a, "log"); });
    table.add({"aten.special_xlog1py.default", "aten.special_xlog1py.other_scalar", "aten.special_xlog1py.self_scalar"},
              [](Builder &b, const Arguments &a) { return xlogy(b, a, "log1p"); });
    table.add("aten.logaddexp.default", [](Builder &b, const Arguments &a) { return logaddexp(b, a, false); });
    table.add("aten.logaddexp2.default", [](Builder &b, const Arguments &a) { return logaddexp(b, a, true); });
    table.add("aten.ldexp.Tensor", [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.tensor("self"), b.apply("aten.pow.Scalar", {{"self", 2.0}, {"exponent", a.tensor("other")}}).front()},
                           Promotion::floating, [](Builder &b, const Operands &v) { return b.mul(v[0], v[1]); });
    });
    table.add("aten.heaviside.default", [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.tensor("self"), a.tensor("values")}, Promotion::common, [](Builder &b, const Operands &v) {
            Node *x = v[0].node();
            Node *step = b.convert(b.gt(x, 0), dtype_of(x));
            return b.where(b.eq(x, 0), v[1], is_floating_point(dtype_of(x)) ? b.where(b.isnan(x), 0.0, step) : step);
        });
    });
    table.add({"aten.addcmul.default"}, addc_rule(false));
    table.add({"aten.addcdiv.default"}, addc_rule(true));
    table.add({"aten.lerp.Scalar", "aten.lerp.Tensor"}, lerp);
}

Rule unary_rule(std::string name, Promotion promotion = Promotion::floating) {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self")}, promotion, [&](Builder &b, const Operands &v) { return b.unary(name, v[0].node()); });
    };
}

Rule floating_rule(Node *(*function)(Builder &, Node *)) {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self")}, Promotion::floating,
                           [&](Builder &b, const Operands &v) { return function(b, v[0].node()); });
    };
}

/// Rounding leaves integers and booleans alone.
Rule rounding_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        if (!is_floating_point(dtype_of(self))) {
            return self;
        }
        Node *x = b.to_compute(self);
        const std::int64_t decimals = a.integer("decimals", 0);
        if (decimals == 0) {
            return b.convert(b.unary(name, x), dtype_of(self));
        }
        const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
        Node *scaled = b.unary(name, decimals > 0 ? b.mul(x, scale) : b.div(x, scale));
        return b.convert(decimals > 0 ? b.div(scaled, scale) : b.mul(scaled, scale), dtype_of(self));
    };
}

void add_unary(RuleTable &table) {
    for (const char *name :
         {"acos", "acosh", "asin",   "asinh", "atan",  "atanh", "cos",  "cosh",  "digamma", "erf",  "erfc", "erfinv", "exp",
          "exp2", "expm1", "lgamma", "log",   "log10", "log1p", "log2", "rsqrt", "sin",     "sinh", "sqrt", "tan",    "tanh"}) {
        table.add(fmt::format("aten.{}.default", name), unary_rule(name));
    }
    const std::pair<const char *, const char *> aliases[] = {{"arccos", "acos"},
                                                             {"arccosh", "acosh"},
                                                             {"arcsin", "asin"},
                                                             {"arcsinh", "asinh"},
                                                             {"arctan", "atan"},
                                                             {"arctanh", "atanh"},
                                                             {"special_erf", "erf"},
                                                             {"special_erfc", "erfc"},
                                                             {"special_erfinv", "erfinv"},
                                                             {"special_exp2", "exp2"},
                                                             {"special_expm1", "expm1"},
                                                             {"special_log1p", "log1p"},
                                                             {"special_digamma", "digamma"},
                                                             {"special_psi", "digamma"},
                                                             {"special_gammaln", "lgamma"}};
    for (const auto &[alias, name] : aliases) {
        table.add(fmt::format("aten.{}.default", alias), unary_rule(name));
    }
    for (const char *name : {"ceil", "floor", "round", "trunc"}) {
        table.add(fmt::format("aten.{}.default", name), rounding_rule(name));
    }
    table.add("aten.round.decimals", rounding_rule("round"));
    table.add({"aten.fix.default"}, rounding_rule("trunc"));
    table.add("aten.frac.default", [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self")}, Promotion::common,
                           [](Builder &b, const Operands &v) { return b.sub(v[0], b.unary("trunc", v[0].node())); });
    });
    table.add({"aten.neg.default", "aten.negative.default"}, unary_rule("neg", Promotion::common));
    table.add("aten.positive.default", [](Builder &, const Arguments &a) { return a.tensor("self"); });
    table.add({"aten.abs.default", "aten.absolute.default"}, [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        const DType type = dtype_of(self);
        if (!is_floating_point(type) && !is_signed_integer(type)) {
            return self;
        }
        return b.convert(b.abs(b.to_compute(self)), type);
    });
    table.add({"aten.sign.default", "aten.sgn.default"}, [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        return dtype_of(self) == DType::boolean ? self : b.convert(b.unary("sign", b.to_compute(self)), dtype_of(self));
    });
    table.add("aten.square.default", [](Builder &b, const Arguments &a) -> Results {
        return b.apply("aten.pow.Tensor_Scalar", {{"self", a.tensor("self")}, {"exponent", Extent(2)}});
    });
    table.add({"aten.sigmoid.default", "aten.special_expit.default"}, floating_rule([](Builder &b, Node *x) { return b.sigmoid(x); }));
    table.add({"aten.logit.default", "aten.special_logit.default"}, [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self")}, Promotion::floating, [&](Builder &b, const Operands &v) {
            Node *x = v[0].node();
            if (std::optional<double> eps = a.optional_real("eps")) {
                x = b.minimum(b.maximum(x, *eps), 1.0 - *eps);
            }
            return b.log(b.div(x, b.sub(1.0, x)));
        });
    });
    table.add({"aten.deg2rad.default"}, floating_rule([](Builder &b, Node *x) { return b.mul(x, std::numbers::pi / 180); }));
    table.add({"aten.rad2deg.default"}, floating_rule([](Builder &b, Node *x) { return b.mul(x, 180 / std::numbers::pi); }));
    table.add({"aten.sinc.default", "aten.special_sinc.default"}, floating_rule([](Builder &b, Node *x) {
                  Node *angle = b.mul(x, std::numbers::pi);
                  return b.where(b.eq(x, 0.0), 1.0, b.div(b.unary("sin", angle), angle));
              }));
    table.add("aten.special_ndtr.default",
              floating_rule([](Builder &b, Node *x) { return b.mul(b.unary("erfc", b.mul(x, -std::numbers::sqrt2 / 2)), 0.5); }));
    table.add("aten.special_entr.default", floating_rule([](Builder &b, Node *x) {
                  const double infinity = std::numeric_limits<double>::infinity();
                  Node *inside =
                      b.where(b.gt(x, 0.0), b.neg(b.mul(x, b.log(x))), b.where(b.eq(x, 0.0), b.full({}, 0.0, dtype_of(x)), -infinity));
                  return b.where(b.isnan(x), x, inside);
              }));
    const Rule fake_quantize = [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        Node *x = b.to_compute(self);
        const double low = a.real("quant_min"), high = a.real("quant_max");
        const auto parameter = [&](const char *name) -> Operand {
            const Operand given = a.operand(name);
            return given.node() ? Operand(b.convert(given.node(), dtype_of(x))) : Operand(to_double(given.number()));
        };
        const Operand scale = parameter("scale"), zero_point = parameter("zero_point");
        Node *step = as_tensor(b, scale, dtype_of(x));
        Node *place = b.add(b.unary("round", b.mul(x, b.div(1.0, step))), zero_point);
        Node *kept = b.minimum(b.maximum(place, low), high);
        Node *value = b.convert(b.mul(b.sub(kept, zero_point), step), dtype_of(self));
        return {value, b.logical_and(b.ge(place, low), b.le(place, high))};
    };
    table.add("aten.fake_quantize_per_tensor_affine.default",
              [=](Builder &b, const Arguments &a) -> Results { return fake_quantize(b, a).front(); });
    table.add("aten.fake_quantize_per_tensor_affine.tensor_qparams",
              [=](Builder &b, const Arguments &a) -> Results { return fake_quantize(b, a).front(); });
    table.add("aten.fake_quantize_per_tensor_affine_cachemask.default", fake_quantize);
    table.add("aten._is_all_true.default",
              [](Builder &b, const Arguments &a) { return b.reduce("all", a.tensor("self"), all_dims(rank_of(a.tensor("self")))); });
    table.add("aten.angle.default", floating_rule([](Builder &b, Node *x) {
                  return b.where(b.isnan(x), x, b.where(b.lt(x, 0.0), b.full({}, std::numbers::pi, dtype_of(x)), 0.0));
              }));
    table.add({"aten.mvlgamma.default", "aten.special_multigammaln.default"}, [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self")}, Promotion::floating, [&](Builder &b, const Operands &v) {
            const std::int64_t p = a.integer("p");
            Node *sum = nullptr;
            for (std::int64_t j = 0; j < p; ++j) {
                Node *term = b.unary("lgamma", b.sub(v[0], 0.5 * static_cast<double>(j)));
                sum = sum ? b.add(sum, term) : term;
            }
            return b.add(sum, static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi));
        });
    });
    table.add("aten.nan_to_num.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        const DType type = dtype_of(self);
        if (!is_floating_point(type)) {
            return self;
        }
        const double largest = type == DType::float16    ? 65504.0
                               : type == DType::bfloat16 ? 0x1.fep127
                               : type == DType::float64  ? std::numeric_limits<double>::max()
                                                         : std::numeric_limits<float>::max();
        Node *x = b.to_compute(self);
        const double infinity = std::numeric_limits<double>::infinity();
        Node *finite = b.where(b.eq(x, infinity), a.real("posinf", largest), b.where(b.eq(x, -infinity), a.real("neginf", -largest), x));
        return b.convert(b.where(b.isnan(x), a.real("nan", 0.0), finite), type);
    });
}

}  // namespace

void add_pointwise_rules(RuleTable &table) {
    add_binary(table);
    add_unary(table);
}

}  // namespace tilewright
