#include "tests/support/reference_math.h"

#include <cmath>
#include <limits>
#include <map>

namespace tilewright::tests {

using Halide::Type;

Scalar normalise(Scalar value, Type type) {
    if (type.is_bfloat()) {
        value.f = static_cast<double>(static_cast<float>(Halide::bfloat16_t(static_cast<float>(value.f))));
    } else if (type.is_float() && type.bits() == 16) {
        value.f = static_cast<double>(static_cast<float>(Halide::float16_t(static_cast<float>(value.f))));
    } else if (type.is_float() && type.bits() == 32) {
        value.f = static_cast<double>(static_cast<float>(value.f));
    } else if (!type.is_float() && type.bits() < 64) {
        std::uint64_t bits = static_cast<std::uint64_t>(value.i) & ((std::uint64_t{1} << type.bits()) - 1);
        bool negative = type.is_int() && (bits >> (type.bits() - 1)) != 0;
        value.i = static_cast<std::int64_t>(negative ? bits | ~((std::uint64_t{1} << type.bits()) - 1) : bits);
    }
    return value;
}

Scalar convert(Scalar value, Type from, Type to) {
    Scalar result;
    bool from_float = from.is_float(), to_float = to.is_float();
    if (to.is_bool()) {
        result.i = from_float ? value.f != 0 : value.i != 0;
        return result;
    }
    if (from_float && to_float) {
        result.f = value.f;
    } else if (from_float) {
        result.i = std::isfinite(value.f) && std::abs(value.f) < 0x1p63 ? static_cast<std::int64_t>(value.f)
                                                                        : std::numeric_limits<std::int64_t>::min();
    } else if (to_float) {
        result.f = from.is_uint() ? static_cast<double>(static_cast<std::uint64_t>(value.i)) : static_cast<double>(value.i);
    } else {
        result.i = value.i;
    }
    return normalise(result, to);
}

namespace {

Scalar of(double f) { return {f, 0}; }
Scalar of(std::int64_t i) { return {0, i}; }
Scalar of(bool b) { return {0, b ? 1 : 0}; }

/// The magnitude that the low seven bits of a float of 8 bits stand for, counting on where its type ends in infinity or NaN.
double float8_magnitude(int bits, int mantissa_bits) {
    const int exponent = bits >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1), bias = mantissa_bits == 3 ? 7 : 15;
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                         : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

Scalar float8_value(std::int64_t byte, int mantissa_bits) {
    const int bits = static_cast<int>(byte & 0x7f);
    const double magnitude = mantissa_bits == 2 && bits == 0x7c                    ? std::numeric_limits<double>::infinity()
                             : bits == 0x7f || (mantissa_bits == 2 && bits > 0x7c) ? std::numeric_limits<double>::quiet_NaN()
                                                                                   : float8_magnitude(bits, mantissa_bits);
    return of(byte & 0x80 ? -magnitude : magnitude);
}

/// The nearest, ties to even; beyond the last number NaN (three mantissa bits) or infinity (two), as PyTorch.
Scalar float8_bits(double value, int mantissa_bits) {
    const int end = mantissa_bits == 3 ? 0x7f : 0x7c;
    int bits = 0;
    if (std::isnan(value)) {
        bits = 0x7f;
    } else {
        const double magnitude = std::abs(value);
        while (bits < end && float8_magnitude(bits + 1, mantissa_bits) <= magnitude) {
            ++bits;
        }
        if (bits < end) {
            const double below = magnitude - float8_magnitude(bits, mantissa_bits),
                         above = float8_magnitude(bits + 1, mantissa_bits) - magnitude;
            bits += below > above || (below == above && bits % 2 != 0);
        }
    }
    return of(std::int64_t{std::signbit(value) ? bits | 0x80 : bits});
}

std::int64_t divide_floor(std::int64_t a, std::int64_t b) {
    if (b == 0 || b == -1) {
        return b == 0 ? 0 : static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
    }
    std::int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

bool is_wide_unsigned(Type type) { return type.is_uint() && type.bits() == 64; }

Scalar integer_pow(Scalar x, Scalar y) {
    std::uint64_t result = 1, base = static_cast<std::uint64_t>(x.i);
    for (std::int64_t n = y.i; n > 0; n >>= 1) {
        result *= n & 1 ? base : 1;
        base *= base;
    }
    return of(static_cast<std::int64_t>(result));
}

double remainder_of(double x, double y) {
    double r = std::fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

double floor_divide(double x, double y) {
    if (y == 0) {
        return x / y;
    }
    double mod = std::fmod(x, y), quotient = (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) {
        quotient -= 1;
    }
    double whole = std::floor(quotient);
    whole += quotient - whole > 0.5 ? 1 : 0;
    return quotient == 0 ? std::copysign(0.0, x / y) : whole;
}

double digamma(double x) {
    if (x == 0) {
        return std::copysign(INFINITY, -x);
    }
    if (x < 0) {
        return x == std::floor(x) ? NAN : digamma(1 - x) - M_PI / std::tan(M_PI * x);
    }
    double result = 0;
    for (; x < 10; x += 1) {
        result -= 1 / x;
    }
    double z = 1 / (x * x);
    return result + std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
}

double erfinv(double y) {
    if (y == 0) {
        return y;
    }
    if (std::isnan(y) || std::abs(y) >= 1) {
        return std::abs(y) == 1 ? std::copysign(INFINITY, y) : NAN;
    }
    double low = -6, high = 6;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        (std::erf(middle) < y ? low : high) = middle;
    }
    return (low + high) / 2;
}

double minimum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? a : b) : std::min(a, b); }
double maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? b : a) : std::max(a, b); }

template<double (*F)(double)> Scalar unary(const Scalar *a, Type) { return of(F(a[0].f)); }
template<double (*F)(double, double)> Scalar binary(const Scalar *a, Type) { return of(F(a[0].f, a[1].f)); }

#define TW_UNARY(NAME, EXPRESSION)        \
    {                                     \
        NAME, [](const Scalar *a, Type) { \
            double x = a[0].f;            \
            (void)x;                      \
            return of(EXPRESSION);        \
        }                                 \
    }
#define TW_COMPARE(NAME, OP)                                             \
    {                                                                    \
        NAME, [](const Scalar *a, Type) { return of(a[0].f OP a[1].f); } \
    }
#define TW_WRAP(NAME, OP)                                                                                                   \
    {                                                                                                                       \
        NAME, [](const Scalar *a, Type) {                                                                                   \
            return of(static_cast<std::int64_t>(static_cast<std::uint64_t>(a[0].i) OP static_cast<std::uint64_t>(a[1].i))); \
        }                                                                                                                   \
    }

const std::map<std::string_view, ScalarFunction> primitives = {
    {"exp", unary<std::exp>},
    {"exp2", unary<std::exp2>},
    {"expm1", unary<std::expm1>},
    {"log", unary<std::log>},
    {"log2", unary<std::log2>},
    {"log10", unary<std::log10>},
    {"log1p", unary<std::log1p>},
    {"sqrt", unary<std::sqrt>},
    TW_UNARY("rsqrt", 1 / std::sqrt(x)),
    {"sin", unary<std::sin>},
    {"cos", unary<std::cos>},
    {"tan", unary<std::tan>},
    {"asin", unary<std::asin>},
    {"acos", unary<std::acos>},
    {"atan", unary<std::atan>},
    {"sinh", unary<std::sinh>},
    {"cosh", unary<std::cosh>},
    {"tanh", unary<std::tanh>},
    {"asinh", unary<std::asinh>},
    {"acosh", unary<std::acosh>},
    {"atanh", unary<std::atanh>},
    {"erf", unary<std::erf>},
    {"erfc", unary<std::erfc>},
    {"erfinv", unary<erfinv>},
    {"lgamma", unary<std::lgamma>},
    {"digamma", unary<digamma>},
    {"floor", unary<std::floor>},
    {"ceil", unary<std::ceil>},
    {"trunc", unary<std::trunc>},
    {"round", unary<std::nearbyint>},
    {"atan2", binary<std::atan2>},
    {"copysign", binary<std::copysign>},
    {"hypot", binary<std::hypot>},
    {"minimum", binary<minimum>},
    {"maximum", binary<maximum>},
    TW_UNARY("isnan", std::isnan(x)),
    TW_UNARY("isinf", std::isinf(x)),
    TW_UNARY("isfinite", std::isfinite(x)),
    TW_UNARY("signbit", std::signbit(x)),
    TW_COMPARE("eq", ==),
    TW_COMPARE("ne", !=),
    TW_COMPARE("lt", <),
    TW_COMPARE("le", <=),
    TW_COMPARE("gt", >),
    TW_COMPARE("ge", >=),
    TW_WRAP("add", +),
    TW_WRAP("sub", -),
    TW_WRAP("mul", *),
    {"abs",
     [](const Scalar *a, Type t) {
         return t.is_float() ? of(std::abs(a[0].f))
                             : of(a[0].i < 0 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a[0].i)) : a[0].i);
     }},
    {"neg", [](const Scalar *a,
               Type t) { return t.is_float() ? of(-a[0].f) : of(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a[0].i))); }},
    {"nextafter",
     [](const Scalar *a, Type t) {
         return t.bits() == 32 ? of(static_cast<double>(std::nextafter(static_cast<float>(a[0].f), static_cast<float>(a[1].f))))
                               : of(std::nextafter(a[0].f, a[1].f));
     }},
    {"pow", [](const Scalar *a, Type t) { return t.is_float() ? of(std::pow(a[0].f, a[1].f)) : integer_pow(a[0], a[1]); }},
    {"fmod",
     [](const Scalar *a, Type t) {
         if (t.is_float())
             return of(std::fmod(a[0].f, a[1].f));
         if (a[1].i == 0 || (a[1].i == -1 && !is_wide_unsigned(t)))
             return of(std::int64_t{0});
         return is_wide_unsigned(t) ? of(static_cast<std::int64_t>(static_cast<std::uint64_t>(a[0].i) % static_cast<std::uint64_t>(a[1].i)))
                                    : of(a[0].i % a[1].i);
     }},
    {"remainder",
     [](const Scalar *a, Type t) {
         if (t.is_float())
             return of(remainder_of(a[0].f, a[1].f));
         if (a[1].i == 0 || (a[1].i == -1 && !is_wide_unsigned(t)))
             return of(std::int64_t{0});
         if (is_wide_unsigned(t))
             return of(static_cast<std::int64_t>(static_cast<std::uint64_t>(a[0].i) % static_cast<std::uint64_t>(a[1].i)));
         return of(a[0].i - divide_floor(a[0].i, a[1].i) * a[1].i);
     }},
    {"div_floor",
     [](const Scalar *a, Type t) { return t.is_float() ? of(floor_divide(a[0].f, a[1].f)) : of(divide_floor(a[0].i, a[1].i)); }},
    {"div_trunc",
     [](const Scalar *a, Type t) {
         if (t.is_float())
             return of(std::trunc(a[0].f / a[1].f));
         return of(a[1].i == 0 ? 0 : a[1].i == -1 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a[0].i)) : a[0].i / a[1].i);
     }},
    {"shift_left",
     [](const Scalar *a, Type t) {
         bool inside = a[1].i >= 0 && a[1].i < t.bits();
         return of(inside ? static_cast<std::int64_t>(static_cast<std::uint64_t>(a[0].i) << a[1].i) : std::int64_t{0});
     }},
    {"float8_e4m3_value", [](const Scalar *a, Type) { return float8_value(a[0].i, 3); }},
    {"float8_e5m2_value", [](const Scalar *a, Type) { return float8_value(a[0].i, 2); }},
    {"float8_e4m3_bits", [](const Scalar *a, Type) { return float8_bits(a[0].f, 3); }},
    {"float8_e5m2_bits", [](const Scalar *a, Type) { return float8_bits(a[0].f, 2); }},
    {"shift_right",
     [](const Scalar *a, Type t) {
         bool inside = a[1].i >= 0 && a[1].i < t.bits();
         return of(a[0].i >> (inside ? a[1].i : t.is_int() ? 63 : 0) & (inside || t.is_int() ? -1 : 0));
     }},
};

}  // namespace

ScalarFunction find_primitive(std::string_view name) {
    auto found = primitives.find(name);
    return found == primitives.end() ? nullptr : found->second;
}

}  // namespace tilewright::tests
