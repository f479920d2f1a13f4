// Elementwise operators.
#include <array>

#include "dsl/algorithm/float8.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

Expr sign(Expr x) {
    if (x.type().is_bool()) {
        return x;
    }
    Expr zero = hi::make_zero(x.type()), one = hi::make_one(x.type());
    Expr positive = hi::Select::make(math::gt(x, zero), one, zero);
    if (x.type().is_uint()) {
        return positive;
    }
    Expr minus_one = hi::make_const(x.type(), -1);
    return hi::Select::make(math::lt(x, zero), minus_one, positive);  // of NaN: 0, as in PyTorch
}

Expr logical_not(Expr x) { return x.type().is_bool() ? !x : math::eq(x, hi::make_zero(x.type())); }

Expr fmin(Expr a, Expr b) { return hi::Select::make(math::isnan(a), b, hi::Select::make(math::isnan(b), a, math::minimum(a, b))); }

Expr fmax(Expr a, Expr b) { return hi::Select::make(math::isnan(a), b, hi::Select::make(math::isnan(b), a, math::maximum(a, b))); }

// Booleans are ordered false < true; Halide orders no 1-bit integers.
Expr lt(Expr a, Expr b) { return a.type().is_bool() ? !a && b : math::lt(a, b); }
Expr le(Expr a, Expr b) { return a.type().is_bool() ? !a || b : math::le(a, b); }
Expr gt(Expr a, Expr b) { return a.type().is_bool() ? a && !b : math::gt(a, b); }
Expr ge(Expr a, Expr b) { return a.type().is_bool() ? a || !b : math::ge(a, b); }

Expr mul(Expr a, Expr b) { return a.type().is_bool() ? a && b : math::mul(a, b); }
Expr add(Expr a, Expr b) { return a.type().is_bool() ? a || b : math::add(a, b); }

struct Unary {
    const char *name;
    Expr (*apply)(Expr);
};
constexpr std::array unary_operators = {
    Unary{"abs", math::abs},         Unary{"acos", math::acos},   Unary{"acosh", math::acosh},   Unary{"asin", math::asin},
    Unary{"asinh", math::asinh},     Unary{"atan", math::atan},   Unary{"atanh", math::atanh},   Unary{"bitwise_not", math::bitwise_not},
    Unary{"ceil", math::ceil},       Unary{"cos", math::cos},     Unary{"cosh", math::cosh},     Unary{"digamma", math::digamma},
    Unary{"erf", math::erf},         Unary{"erfc", math::erfc},   Unary{"erfinv", math::erfinv}, Unary{"exp", math::exp},
    Unary{"exp2", math::exp2},       Unary{"expm1", math::expm1}, Unary{"floor", math::floor},   Unary{"isfinite", math::isfinite},
    Unary{"isinf", math::isinf},     Unary{"isnan", math::isnan}, Unary{"lgamma", math::lgamma}, Unary{"log", math::log},
    Unary{"log10", math::log10},     Unary{"log1p", math::log1p}, Unary{"log2", math::log2},     Unary{"logical_not", logical_not},
    Unary{"neg", math::neg},         Unary{"round", math::round}, Unary{"rsqrt", math::rsqrt},   Unary{"sign", sign},
    Unary{"signbit", math::signbit}, Unary{"sin", math::sin},     Unary{"sinh", math::sinh},     Unary{"sqrt", math::sqrt},
    Unary{"tan", math::tan},         Unary{"tanh", math::tanh},   Unary{"trunc", math::trunc},
};

struct Binary {
    const char *name;
    Expr (*apply)(Expr, Expr);
};
constexpr std::array binary_operators = {
    Binary{"add", add},
    Binary{"sub", math::sub},
    Binary{"mul", mul},
    Binary{"div", math::div_true},
    Binary{"div_floor", math::div_floor},
    Binary{"div_trunc", math::div_trunc},
    Binary{"fmod", math::fmod},
    Binary{"remainder", math::remainder},
    Binary{"pow", math::pow},
    Binary{"atan2", math::atan2},
    Binary{"copysign", math::copysign},
    Binary{"hypot", math::hypot},
    Binary{"nextafter", math::nextafter},
    Binary{"minimum", math::minimum},
    Binary{"maximum", math::maximum},
    Binary{"fmin", fmin},
    Binary{"fmax", fmax},
    Binary{"bitwise_and", math::bitwise_and},
    Binary{"bitwise_or", math::bitwise_or},
    Binary{"bitwise_xor", math::bitwise_xor},
    Binary{"shift_left", math::shift_left},
    Binary{"shift_right", math::shift_right},
    Binary{"eq", math::eq},
    Binary{"ne", math::ne},
    Binary{"lt", lt},
    Binary{"le", le},
    Binary{"gt", gt},
    Binary{"ge", ge},
};

void convert_element_type(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a");
    const DType from = a.meta().dtype, to = TranslationContext::dtype(node, "dtype");
    const Argument *written = node.find("explicit");
    const bool by_program = written && written->get_if<bool>() && *written->get_if<bool>();
    context.define_pointwise(node, [&](const Indices &at) {
        Expr value = a(at);
        if (is_float8(from)) {
            value = math::float8_value(from, value);
        }
        if (is_float8(to)) {
            return math::float8_bits(to, math::convert(Halide::Float(32), value));
        }
        return by_program ? math::explicit_cast(to_halide(to), value) : math::convert(to_halide(to), value);
    });
}

void where(TranslationContext &context, const Node &node) {
    TensorValue condition = context.operand(node, "condition"), a = context.operand(node, "a"), b = context.operand(node, "b");
    context.define_pointwise(node, [&](const Indices &at) { return hi::Select::make(condition(at), a(at), b(at)); });
}

}  // namespace

void add_pointwise(Table &table) {
    for (const Unary &op : unary_operators) {
        table[std::string("prims.") + op.name] = [&op](TranslationContext &context, const Node &node) {
            TensorValue a = context.operand(node, "a");
            context.define_pointwise(node, [&](const Indices &at) { return op.apply(a(at)); });
        };
    }
    for (const Binary &op : binary_operators) {
        table[std::string("prims.") + op.name] = [&op](TranslationContext &context, const Node &node) {
            TensorValue a = context.operand(node, "a"), b = context.operand(node, "b");
            internal_assert(a.type() == b.type(), "{} ({}): operands are {} and {}", node.name, node.target, name(a.meta().dtype),
                            name(b.meta().dtype));
            context.define_pointwise(node, [&](const Indices &at) { return op.apply(a(at), b(at)); });
        };
    }
    table["prims.convert_element_type"] = convert_element_type;
    table["prims.where"] = where;
}

}  // namespace tilewright::translation
