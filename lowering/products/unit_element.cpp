#include "lowering/products/unit_element.h"

#include <algorithm>
#include <vector>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/float8.h"
#include "dsl/algorithm/math.h"
#include "lowering/products/strided_operand.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

const hi::Call *primitive(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    return call && !math::primitive_name(call).empty() ? call : nullptr;
}

}  // namespace

int unit_bytes(UnitElement element) {
    return element == UnitElement::tf32 ? 4 : element == UnitElement::float16 || element == UnitElement::bfloat16 ? 2 : 1;
}

std::string device_type(UnitElement element) {
    switch (element) {
        case UnitElement::float16:
            return "tw::half";
        case UnitElement::bfloat16:
            return "tw::bfloat16";
        case UnitElement::tf32:
            return "float";
        case UnitElement::int8:
            return "tw::int8";
        case UnitElement::uint8:
            return "tw::uint8";
        case UnitElement::float8_e4m3:
            return "tw::float8_e4m3";
        case UnitElement::float8_e5m2:
            return "tw::float8_e5m2";
    }
    return {};
}

Halide::Type unit_sum_type(UnitElement element) {
    return element == UnitElement::int8 || element == UnitElement::uint8 ? Halide::Int(32) : Halide::Float(32);
}

bool multiply_together(UnitElement a, UnitElement b) {
    return a == b || (unit_bytes(a) == 1 && unit_bytes(b) == 1 && unit_sum_type(a) == unit_sum_type(b));
}

bool is_unit_width(int columns, int bytes, bool in_registers) {
    static const std::vector<int> all = {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256},
                                  registers = {8, 16, 32, 48, 64, 96, 128, 192, 256}, rows = {8, 16, 32, 64, 96, 128, 192, 256};
    const std::vector<int> &widths = in_registers ? registers : bytes == 2 ? all : rows;
    return std::find(widths.begin(), widths.end(), columns) != widths.end();
}

std::optional<UnitFactor> unit_factor(const Expr &factor) {
    const Expr value = below_widening(factor);
    const Halide::Type type = value.type();
    if (type.is_float() && type.bits() == 16) {
        return UnitFactor{value, type.is_bfloat() ? UnitElement::bfloat16 : UnitElement::float16};
    }
    const hi::Call *call = primitive(value);
    if (const auto narrow = call ? math::float8_of(call) : std::nullopt) {
        return UnitFactor{call->args[0], *narrow == DType::float8_e4m3fn ? UnitElement::float8_e4m3 : UnitElement::float8_e5m2};
    }
    if (type == Halide::Float(32)) {
        // An element of a window, or 0 beyond the tensor: the unit multiplies the element.
        const auto *padded = value.as<hi::Select>();
        const auto inside = padded && hi::is_const_zero(padded->false_value) ? unit_factor(padded->true_value) : std::nullopt;
        return UnitFactor{value, inside ? inside->element : UnitElement::tf32};
    }
    const bool converts = call && (math::primitive_name(call) == "convert" || math::primitive_name(call) == "explicit_cast");
    const Expr whole = converts ? call->args[0] : value;
    if (type == Halide::Int(32) && (whole.type() == Halide::Int(8) || whole.type() == Halide::UInt(8))) {
        return UnitFactor{whole, whole.type().is_int() ? UnitElement::int8 : UnitElement::uint8};
    }
    if (type == Halide::Int(8) || type == Halide::UInt(8)) {  // below Halide's own casts
        return UnitFactor{value, type.is_int() ? UnitElement::int8 : UnitElement::uint8};
    }
    return std::nullopt;
}

std::optional<std::pair<Expr, Expr>> factors_of(const Expr &term) {
    if (const auto *product = term.as<hi::Mul>()) {
        return std::pair(product->a, product->b);
    }
    const hi::Call *call = primitive(term);
    return call && math::primitive_name(call) == "mul" ? std::optional(std::pair(call->args[0], call->args[1])) : std::nullopt;
}

}  // namespace tilewright
