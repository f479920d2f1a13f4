#include "dsl/algorithm/math.h"

#include "dsl/error.h"

namespace tilewright::math {

namespace hi = Halide::Internal;
using Halide::Type;

std::string_view primitive_name(const hi::Call *call) {
    std::string_view name = call->name;
    bool ours = call->call_type == hi::Call::PureExtern && name.starts_with(prefix);
    return ours ? name.substr(prefix.size()) : std::string_view();
}

Expr call(Type type, std::string_view name, const std::vector<Expr> &arguments) {
    return hi::Call::make(type, std::string(prefix) + std::string(name), arguments, hi::Call::PureExtern);
}

namespace {

Expr unary(std::string_view name, const Expr &x) { return call(x.type(), name, {x}); }

void require_equal_types(std::string_view name, const Expr &a, const Expr &b) {
    if (a.type() != b.type()) {
        std::ostringstream types;
        types << a.type() << " and " << b.type();
        internal_error("math::{} has operands of types {}", name, types.str());
    }
}

Expr binary(std::string_view name, const Expr &a, const Expr &b) {
    require_equal_types(name, a, b);
    return call(a.type(), name, {a, b});
}

Expr comparison(std::string_view name, const Expr &a, const Expr &b) {
    require_equal_types(name, a, b);
    return call(Halide::Bool(), name, {a, b});
}

bool is_exact(const Expr &x) { return !x.type().is_float(); }

}  // namespace

// clang-format off
Expr exp(Expr x) { return unary("exp", x); }
Expr exp2(Expr x) { return unary("exp2", x); }
Expr expm1(Expr x) { return unary("expm1", x); }
Expr log(Expr x) { return unary("log", x); }
Expr log2(Expr x) { return unary("log2", x); }
Expr log10(Expr x) { return unary("log10", x); }
Expr log1p(Expr x) { return unary("log1p", x); }
Expr sqrt(Expr x) { return unary("sqrt", x); }
Expr rsqrt(Expr x) { return unary("rsqrt", x); }
Expr sin(Expr x) { return unary("sin", x); }
Expr cos(Expr x) { return unary("cos", x); }
Expr tan(Expr x) { return unary("tan", x); }
Expr asin(Expr x) { return unary("asin", x); }
Expr acos(Expr x) { return unary("acos", x); }
Expr atan(Expr x) { return unary("atan", x); }
Expr sinh(Expr x) { return unary("sinh", x); }
Expr cosh(Expr x) { return unary("cosh", x); }
Expr tanh(Expr x) { return unary("tanh", x); }
Expr asinh(Expr x) { return unary("asinh", x); }
Expr acosh(Expr x) { return unary("acosh", x); }
Expr atanh(Expr x) { return unary("atanh", x); }
Expr erf(Expr x) { return unary("erf", x); }
Expr erfc(Expr x) { return unary("erfc", x); }
Expr erfinv(Expr x) { return unary("erfinv", x); }
Expr lgamma(Expr x) { return unary("lgamma", x); }
Expr digamma(Expr x) { return unary("digamma", x); }
Expr floor(Expr x) { return is_exact(x) ? x : unary("floor", x); }
Expr ceil(Expr x) { return is_exact(x) ? x : unary("ceil", x); }
Expr trunc(Expr x) { return is_exact(x) ? x : unary("trunc", x); }
Expr round(Expr x) { return is_exact(x) ? x : unary("round", x); }
Expr abs(Expr x) { return x.type().is_uint() ? x : unary("abs", x); }
Expr neg(Expr x) { return unary("neg", x); }
Expr copysign(Expr x, Expr sign) { return binary("copysign", x, sign); }
Expr signbit(Expr x) {
    if (is_exact(x)) return x.type().is_uint() ? hi::make_bool(false) : x < hi::make_zero(x.type());
    return call(Halide::Bool(), "signbit", {x});
}
Expr atan2(Expr y, Expr x) { return binary("atan2", y, x); }
Expr pow(Expr x, Expr y) { return binary("pow", x, y); }
Expr fmod(Expr x, Expr y) { return binary("fmod", x, y); }
Expr remainder(Expr x, Expr y) { return binary("remainder", x, y); }
Expr nextafter(Expr x, Expr y) { return binary("nextafter", x, y); }
Expr hypot(Expr x, Expr y) { return binary("hypot", x, y); }
Expr isnan(Expr x) { return is_exact(x) ? hi::make_bool(false) : call(Halide::Bool(), "isnan", {x}); }
Expr isinf(Expr x) { return is_exact(x) ? hi::make_bool(false) : call(Halide::Bool(), "isinf", {x}); }
Expr isfinite(Expr x) { return is_exact(x) ? hi::make_bool(true) : call(Halide::Bool(), "isfinite", {x}); }

Expr minimum(Expr a, Expr b) {
    if (a.type().is_bool()) return a && b;
    if (is_exact(a)) { require_equal_types("minimum", a, b); return hi::Min::make(a, b); }
    return binary("minimum", a, b);
}
Expr maximum(Expr a, Expr b) {
    if (a.type().is_bool()) return a || b;
    if (is_exact(a)) { require_equal_types("maximum", a, b); return hi::Max::make(a, b); }
    return binary("maximum", a, b);
}

Expr eq(Expr a, Expr b) { return is_exact(a) ? a == b : comparison("eq", a, b); }
Expr ne(Expr a, Expr b) { return is_exact(a) ? a != b : comparison("ne", a, b); }
Expr lt(Expr a, Expr b) { return is_exact(a) ? a < b : comparison("lt", a, b); }
Expr le(Expr a, Expr b) { return is_exact(a) ? a <= b : comparison("le", a, b); }
Expr gt(Expr a, Expr b) { return is_exact(a) ? a > b : comparison("gt", a, b); }
Expr ge(Expr a, Expr b) { return is_exact(a) ? a >= b : comparison("ge", a, b); }

// Neutral operands of integers are dropped; of floats they may change a sign of zero.
Expr add(Expr a, Expr b) {
    if (!is_exact(a)) return hi::Add::make(a, b);
    return hi::is_const_zero(b) ? a : hi::is_const_zero(a) ? b : binary("add", a, b);
}
Expr sub(Expr a, Expr b) {
    if (!is_exact(a)) return hi::Sub::make(a, b);
    return hi::is_const_zero(b) ? a : binary("sub", a, b);
}
Expr mul(Expr a, Expr b) {
    if (!is_exact(a)) return hi::Mul::make(a, b);
    return hi::is_const_one(b) ? a : hi::is_const_one(a) ? b : binary("mul", a, b);
}
Expr div_true(Expr a, Expr b) { require_equal_types("div_true", a, b); return hi::Div::make(a, b); }
Expr div_floor(Expr a, Expr b) { return binary("div_floor", a, b); }
Expr div_trunc(Expr a, Expr b) { return binary("div_trunc", a, b); }
Expr shift_left(Expr a, Expr b) { return binary("shift_left", a, b); }
Expr shift_right(Expr a, Expr b) { return binary("shift_right", a, b); }
Expr bitwise_and(Expr a, Expr b) {
    if (!a.type().is_bool()) return a & b;
    return hi::is_const_one(a) ? b : hi::is_const_one(b) ? a : a && b;
}
Expr bitwise_or(Expr a, Expr b) {
    if (!a.type().is_bool()) return a | b;
    return hi::is_const_zero(a) ? b : hi::is_const_zero(b) ? a : a || b;
}
Expr bitwise_xor(Expr a, Expr b) { return a.type().is_bool() ? a != b : a ^ b; }
Expr bitwise_not(Expr a) { return a.type().is_bool() ? !a : ~a; }

Expr convert(Type type, Expr x) { return x.type() == type ? x : call(type, "convert", {x}); }
Expr explicit_cast(Type type, Expr x) { return x.type() == type ? x : call(type, "explicit_cast", {x}); }
// clang-format on

Expr checked_index(Expr index, Expr size, bool wrap, int site) {
    return call(Halide::Int(32), "checked_index", {index, size, hi::make_bool(wrap), site});
}

}  // namespace tilewright::math
