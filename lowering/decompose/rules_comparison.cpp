// Comparisons, logic, bits, selection.
#include <limits>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

using Operands = std::vector<Operand>;

/// Booleans compare as numbers.
Operand as_number_operand(Builder &b, const Operand &operand) {
    Node *node = operand.node();
    return node && dtype_of(node) == DType::boolean ? Operand(b.convert(node, DType::uint8)) : operand;
}

Rule comparison_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self"), a.operand("other")}, Promotion::boolean, [&](Builder &b, const Operands &v) {
            return b.binary(name, as_number_operand(b, v[0]), as_number_operand(b, v[1]));
        });
    };
}

Node *as_boolean(Builder &b, const Operand &operand) { return as_tensor(b, operand, DType::boolean); }

Rule logical_rule(std::string name) {
    return
        [=](Builder &b, const Arguments &a) { return b.binary(name, as_boolean(b, a.operand("self")), as_boolean(b, a.operand("other"))); };
}

Rule bitwise_rule(std::string name) {
    return [=](Builder &b, const Arguments &a) {
        return elementwise(b, {a.operand("self"), a.operand("other")}, Promotion::common,
                           [&](Builder &b, const Operands &v) { return b.binary(name, v[0], v[1]); });
    };
}

Node *clamp(Builder &b, const Arguments &a, const char *low, const char *high) {
    Operands operands = {a.operand("self")};
    const bool has_low = low && a.has(low);
    const bool has_high = high && a.has(high);
    if (has_low) {
        operands.push_back(a.operand(low));
    }
    if (has_high) {
        operands.push_back(a.operand(high));
    }
    return elementwise(b, operands, Promotion::common, [&](Builder &b, const Operands &v) {
        Node *value = v[0].node();
        if (has_low) {
            value = b.maximum(value, v[1]);
        }
        return has_high ? b.minimum(value, v.back()) : value;
    });
}

Node *where(Builder &b, const Arguments &a) {
    Node *condition = b.convert(a.tensor("condition"), DType::boolean);
    const Operand self = a.operand("self");
    const Operand other = a.operand("other");
    return elementwise(b, {self, other}, Promotion::common, [&](Builder &b, const Operands &v) { return b.where(condition, v[0], v[1]); });
}

Node *masked_fill(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *mask = b.convert(a.tensor("mask"), DType::boolean);
    Node *x = b.to_compute(self);
    const Operand value = a.operand("value");
    return b.convert(b.where(mask, value.node() ? Operand(b.convert(value.node(), dtype_of(x))) : value, x), dtype_of(self));
}

/// NaN and infinities of floats; integers have none.
Rule class_rule(std::string name, bool of_integers) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        if (!is_floating_point(dtype_of(self))) {
            return b.full(sizes_of(self), of_integers, DType::boolean);
        }
        return b.unary(name, b.to_compute(self));
    };
}

Rule infinity_rule(double infinity) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        return is_floating_point(dtype_of(self)) ? b.eq(b.to_compute(self), infinity) : b.full(sizes_of(self), false, DType::boolean);
    };
}

Node *isclose(Builder &b, const Arguments &a) {
    const double rtol = a.real("rtol", 1e-5);
    const double atol = a.real("atol", 1e-8);
    const bool equal_nan = a.flag("equal_nan", false);
    Node *self = a.tensor("self");
    if (!is_floating_point(dtype_of(self))) {
        const DType type = dtype_of(self) == DType::boolean ? DType::uint8 : dtype_of(self);
        Node *x = b.convert(self, type);
        Node *y = b.convert(a.tensor("other"), type);
        Node *distance = b.convert(b.abs(b.sub(x, y)), DType::float32);
        Node *allowed = b.add(b.mul(b.abs(b.convert(y, DType::float32)), rtol), atol);
        return b.logical_or(b.eq(x, y), b.le(distance, allowed));
    }
    return elementwise(b, {self, a.tensor("other")}, Promotion::boolean, [&](Builder &b, const Operands &v) {
        Node *x = v[0].node();
        Node *y = v[1].node();
        Node *distance = b.abs(b.sub(x, y));
        Node *near = b.logical_and(b.unary("isfinite", distance), b.le(distance, b.add(b.abs(b.mul(y, rtol)), atol)));
        Node *close = b.logical_or(b.eq(x, y), near);
        return equal_nan ? b.logical_or(close, b.logical_and(b.isnan(x), b.isnan(y))) : close;
    });
}

/// Compares every element with every test element.
Node *isin(Builder &b, const Arguments &a) {
    const Operand elements = a.has("elements") ? a.operand("elements") : a.operand("element");
    const Operand tests = a.has("test_elements") ? a.operand("test_elements") : a.operand("test_element");
    const DType type = result_type({elements, tests});
    const DType computed = type == DType::boolean ? DType::uint8 : compute_type(type);
    Node *x = b.convert(as_tensor(b, elements, type), computed);
    Node *t = b.flatten(b.convert(as_tensor(b, tests, type), computed));
    Node *found = b.any(b.eq(b.unsqueeze(x, rank_of(x)), t), {rank_of(x)});
    return a.flag("invert", false) ? b.logical_not(found) : found;
}

}  // namespace

void add_comparison_rules(RuleTable &table) {
    for (const char *name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
        table.add(fmt::format("aten.{}.Tensor", name), comparison_rule(name));
        table.add(fmt::format("aten.{}.Scalar", name), comparison_rule(name));
    }
    const std::pair<const char *, const char *> aliases[] = {
        {"not_equal", "ne"}, {"less", "lt"}, {"less_equal", "le"}, {"greater", "gt"}, {"greater_equal", "ge"}};
    for (const auto &[alias, name] : aliases) {
        table.add(fmt::format("aten.{}.Tensor", alias), comparison_rule(name));
        table.add(fmt::format("aten.{}.Scalar", alias), comparison_rule(name));
    }
    table.add("aten.logical_and.default", logical_rule("bitwise_and"));
    table.add("aten.logical_or.default", logical_rule("bitwise_or"));
    table.add("aten.logical_xor.default", logical_rule("bitwise_xor"));
    table.add("aten.logical_not.default", [](Builder &b, const Arguments &a) { return b.logical_not(as_boolean(b, a.operand("self"))); });
    const std::pair<const char *, const char *> bits[] = {{"and", "bitwise_and"}, {"or", "bitwise_or"}, {"xor", "bitwise_xor"}};
    for (const auto &[name, prim] : bits) {
        for (const char *overload : {"Tensor", "Scalar", "Scalar_Tensor"}) {
            table.add(fmt::format("aten.bitwise_{}.{}", name, overload), bitwise_rule(prim));
            table.add(fmt::format("aten.__{}__.{}", name, overload), bitwise_rule(prim));
        }
    }
    table.add("aten.bitwise_not.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        return b.unary(dtype_of(self) == DType::boolean ? "logical_not" : "bitwise_not", self);
    });
    for (const char *overload : {"Tensor", "Tensor_Scalar", "Scalar_Tensor"}) {
        table.add(fmt::format("aten.bitwise_left_shift.{}", overload), bitwise_rule("shift_left"));
        table.add(fmt::format("aten.bitwise_right_shift.{}", overload), bitwise_rule("shift_right"));
    }
    for (const char *overload : {"Tensor", "Scalar"}) {
        table.add(fmt::format("aten.__lshift__.{}", overload), bitwise_rule("shift_left"));
        table.add(fmt::format("aten.__rshift__.{}", overload), bitwise_rule("shift_right"));
    }

    table.add({"aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor"},
              [](Builder &b, const Arguments &a) { return clamp(b, a, "min", "max"); });
    table.add({"aten.clamp_min.default", "aten.clamp_min.Tensor"},
              [](Builder &b, const Arguments &a) { return clamp(b, a, "min", nullptr); });
    table.add({"aten.clamp_max.default", "aten.clamp_max.Tensor"},
              [](Builder &b, const Arguments &a) { return clamp(b, a, nullptr, "max"); });
    table.add({"aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar"}, where);
    table.add({"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"}, masked_fill);

    table.add("aten.isnan.default", class_rule("isnan", false));
    table.add("aten.isinf.default", class_rule("isinf", false));
    table.add("aten.isfinite.default", class_rule("isfinite", true));
    table.add("aten.isreal.default",
              [](Builder &b, const Arguments &a) { return b.full(sizes_of(a.tensor("self")), true, DType::boolean); });
    table.add("aten.isposinf.default", infinity_rule(std::numeric_limits<double>::infinity()));
    table.add("aten.isneginf.default", infinity_rule(-std::numeric_limits<double>::infinity()));
    table.add("aten.signbit.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        if (is_floating_point(dtype_of(self))) {
            return b.unary("signbit", b.to_compute(self));
        }
        return is_signed_integer(dtype_of(self)) ? b.lt(self, 0) : b.full(sizes_of(self), false, DType::boolean);
    });
    table.add("aten.isclose.default", isclose);
    table.add({"aten.isin.Tensor_Tensor", "aten.isin.Tensor_Scalar", "aten.isin.Scalar_Tensor"}, isin);
}

}  // namespace tilewright
