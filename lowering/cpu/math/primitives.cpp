#include "lowering/cpu/math/primitives.h"

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "dsl/error.h"
#include "lowering/cpu/math/conversions.h"
#include "lowering/cpu/math/float8_math.h"
#include "lowering/cpu/math/float_math.h"
#include "lowering/cpu/math/integer_math.h"
#include "lowering/cpu/math/strict.h"
#include "lowering/cpu/math/wide_float_math.h"

namespace tilewright {

using Halide::Expr;
using Halide::Float;
using Halide::Type;
using Halide::UInt;
using Halide::Internal::Call;

namespace {

using Args = std::vector<Expr>;
using Expansion = std::function<Expr(Type, const Args &)>;
using Unary = Strict (*)(const Strict &);

/// libm's function: `name` in float64, `name`f in float32.
Expr libm(const std::string &name, const Args &args) {
    const Type type = args[0].type();
    return Call::make(type, type.bits() == 64 ? name : name + "f", args, Call::PureExtern);
}

/// Functions that Halide's own runtime gives as vector instructions ("sqrt_f32").
Expr instruction(const std::string &name, const Expr &x) {
    return Call::make(x.type(), fmt::format("{}_f{}", name, x.type().bits()), {x}, Call::PureExtern);
}

Expansion through_libm(std::string name) {
    return [name](Type, const Args &a) { return libm(name, a); };
}

/// Vector arithmetic in float32, libm in float64.
Expansion vector_or_libm(Unary function, std::string name) {
    return [function, name](Type, const Args &a) { return a[0].type() == Float(32) ? function(Strict(a[0])).expr() : libm(name, a); };
}

/// Our own scalar function of float64; float32 goes through it.
Expansion through_runtime(std::string name) {
    return [name](Type type, const Args &a) {
        Args wide;
        for (const Expr &x : a) {
            wide.push_back(convert_value(Float(64), x));
        }
        return convert_value(type, Call::make(Float(64), name, wide, Call::PureExtern));
    };
}

Expansion rounding(std::string name) {
    return [name](Type, const Args &a) { return a[0].type().is_float() ? instruction(name, a[0]) : a[0]; };
}

/// Half to even.
Expr round_to_even(Type type, const Args &a) { return type.is_float() ? Call::make(type, Call::round, a, Call::PureIntrinsic) : a[0]; }

template<typename OnFloat, typename OnInteger> Expansion by_type(OnFloat on_float, OnInteger on_integer) {
    return [on_float, on_integer](Type, const Args &a) -> Expr {
        if (a[0].type().is_float()) {
            return on_float(Strict(a[0]), a.size() > 1 ? Strict(a[1]) : Strict(a[0]));
        }
        return on_integer(a[0], a.size() > 1 ? a[1] : a[0]);
    };
}

Expr float_remainder(const Strict &x, const Strict &y) {
    const Strict rest(libm("fmod", {x.expr(), y.expr()}));
    const Expr differs = !(rest == 0.0) && sign_bit(rest) != sign_bit(y);
    return select(differs && !is_nan(rest), rest + y, rest).expr();
}

/// PyTorch's floor division (c10::div_floor_floating).
Expr float_div_floor(const Strict &a, const Strict &b) {
    const Strict rest(libm("fmod", {a.expr(), b.expr()}));
    const Strict exact = (a - rest) / b;
    const Expr differs = !(rest == 0.0) && ((b < 0.0) != (rest < 0.0));
    const Strict quotient = select(differs, exact - 1.0, exact);
    const Strict floor(instruction("floor", quotient.expr()));
    const Strict adjusted = select(quotient - floor > 0.5, floor + 1.0, floor);
    const Strict signed_zero = copy_sign(a.like(0.0), a / b);
    const Strict result = select(quotient == 0.0, signed_zero, adjusted);
    return select(b == 0.0, a / b, result).expr();
}

Strict square_root(const Strict &x) { return Strict(instruction("sqrt", x.expr())); }

/// PyTorch's own shortcuts for constant exponents; they are exact or round as its do.
Expr float_pow(const Strict &x, const Strict &y) {
    const std::optional<double> exponent = Halide::Internal::as_const_float(y.expr());
    if (exponent == 1.0) {
        return x.expr();
    }
    if (exponent == 2.0) {
        return (x * x).expr();
    }
    if (exponent == 3.0) {
        return (x * x * x).expr();
    }
    if (exponent == -1.0) {
        return (1.0 / x).expr();
    }
    if (exponent == -2.0) {
        return (1.0 / (x * x)).expr();
    }
    if (exponent == 0.5) {
        return square_root(x).expr();
    }
    if (exponent == -0.5) {
        return (1.0 / square_root(x)).expr();
    }
    return x.type() == Float(32) ? float_math::pow(x, y).expr() : libm("pow", {x.expr(), y.expr()});
}

Expr boolean_less(const Expr &a, const Expr &b) { return a.type().is_bool() ? !a && b : a < b; }

std::map<std::string, Expansion, std::less<>> float_functions() {
    std::map<std::string, Expansion, std::less<>> t;
    t["exp"] = vector_or_libm(float_math::exp, "exp");
    t["exp2"] = vector_or_libm(float_math::exp2, "exp2");
    t["expm1"] = vector_or_libm(float_math::expm1, "expm1");
    t["log"] = vector_or_libm(float_math::log, "log");
    t["log2"] = vector_or_libm(float_math::log2, "log2");
    t["log10"] = vector_or_libm(float_math::log10, "log10");
    t["log1p"] = vector_or_libm(float_math::log1p, "log1p");
    t["tanh"] = vector_or_libm(float_math::tanh, "tanh");
    t["erf"] = vector_or_libm(float_math::erf, "erf");
    t["sin"] = vector_or_libm(float_math::sin, "sin");
    t["cos"] = vector_or_libm(float_math::cos, "cos");
    t["tan"] = vector_or_libm(float_math::tan, "tan");
    for (const char *name : {"asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "atan2", "nextafter", "hypot"}) {
        t[name] = through_libm(name);
    }
    t["erfinv"] = through_runtime("tilewright_erfinv");
    t["digamma"] = through_runtime("tilewright_digamma");
    t["lgamma"] = through_runtime("tilewright_lgamma");
    t["sqrt"] = [](Type, const Args &a) { return square_root(Strict(a[0])).expr(); };
    t["rsqrt"] = [](Type, const Args &a) { return (1.0 / square_root(Strict(a[0]))).expr(); };
    for (const char *name : {"floor", "ceil", "trunc"}) {
        t[name] = rounding(name);
    }
    t["round"] = round_to_even;
    t["copysign"] = [](Type, const Args &a) { return copy_sign(Strict(a[0]), Strict(a[1])).expr(); };
    return t;
}

std::map<std::string, Expansion, std::less<>> tests_and_comparisons() {
    using S = const Strict &;
    using E = const Expr &;
    std::map<std::string, Expansion, std::less<>> t;
    t["signbit"] = by_type([](S a, S) { return sign_bit(a); }, [](E a, E) { return a < Halide::Internal::make_zero(a.type()); });
    const auto no = [](E, E) { return Halide::Internal::const_false(); };
    t["isnan"] = by_type([](S a, S) { return is_nan(a); }, no);
    t["isinf"] = by_type([](S a, S) { return is_infinite(a); }, no);
    t["isfinite"] = by_type([](S a, S) { return is_finite(a); }, [](E, E) { return Halide::Internal::const_true(); });
    t["eq"] = by_type([](S a, S b) { return a == b; }, [](E a, E b) { return a == b; });
    t["ne"] = by_type([](S a, S b) { return !(a == b); }, [](E a, E b) { return a != b; });
    t["lt"] = by_type([](S a, S b) { return a < b; }, [](E a, E b) { return boolean_less(a, b); });
    t["gt"] = by_type([](S a, S b) { return b < a; }, [](E a, E b) { return boolean_less(b, a); });
    t["le"] = by_type([](S a, S b) { return a <= b; }, [](E a, E b) { return !boolean_less(b, a); });
    t["ge"] = by_type([](S a, S b) { return b <= a; }, [](E a, E b) { return !boolean_less(a, b); });
    t["minimum"] = [](Type, const Args &a) { return minimum_of(a[0], a[1]); };
    t["maximum"] = [](Type, const Args &a) { return maximum_of(a[0], a[1]); };
    return t;
}

std::map<std::string, Expansion, std::less<>> arithmetic() {
    using S = const Strict &;
    using E = const Expr &;
    namespace im = integer_math;
    std::map<std::string, Expansion, std::less<>> t;
    t["abs"] = by_type([](S a, S) { return absolute(a).expr(); }, [](E a, E) { return im::abs(a); });
    t["neg"] = by_type([](S a, S) { return negate(a).expr(); }, [](E a, E) { return im::neg(a); });
    t["add"] = by_type([](S a, S b) { return (a + b).expr(); }, im::add);
    t["sub"] = by_type([](S a, S b) { return (a - b).expr(); }, im::sub);
    t["mul"] = by_type([](S a, S b) { return (a * b).expr(); }, im::mul);
    t["div_true"] = by_type([](S a, S b) { return (a / b).expr(); }, im::div_trunc);
    t["div_trunc"] = by_type([](S a, S b) { return instruction("trunc", (a / b).expr()); }, im::div_trunc);
    t["div_floor"] = by_type(float_div_floor, im::div_floor);
    t["fmod"] = by_type([](S a, S b) { return libm("fmod", {a.expr(), b.expr()}); }, im::fmod);
    t["remainder"] = by_type(float_remainder, im::remainder);
    t["pow"] = by_type(float_pow, im::pow);
    t["shift_left"] = [](Type, const Args &a) { return im::shift_left(a[0], a[1]); };
    t["shift_right"] = [](Type, const Args &a) { return im::shift_right(a[0], a[1]); };
    t["bitwise_and"] = [](Type, const Args &a) { return a[0].type().is_bool() ? a[0] && a[1] : a[0] & a[1]; };
    t["bitwise_or"] = [](Type, const Args &a) { return a[0].type().is_bool() ? a[0] || a[1] : a[0] | a[1]; };
    t["bitwise_xor"] = [](Type, const Args &a) { return a[0].type().is_bool() ? a[0] != a[1] : a[0] ^ a[1]; };
    t["bitwise_not"] = [](Type, const Args &a) { return a[0].type().is_bool() ? !a[0] : ~a[0]; };
    return t;
}

std::map<std::string, Expansion, std::less<>> float8_conversions() {
    std::map<std::string, Expansion, std::less<>> t;
    t["float8_e4m3_value"] = [](Type, const Args &a) { return float8_value(float8_e4m3, a[0]); };
    t["float8_e5m2_value"] = [](Type, const Args &a) { return float8_value(float8_e5m2, a[0]); };
    t["float8_e4m3_bits"] = [](Type, const Args &a) { return float8_bits(float8_e4m3, a[0]); };
    t["float8_e5m2_bits"] = [](Type, const Args &a) { return float8_bits(float8_e5m2, a[0]); };
    return t;
}

const std::map<std::string, Expansion, std::less<>> &expansions() {
    static const auto table = [] {
        auto all = float_functions();
        all.merge(float8_conversions());
        all.merge(tests_and_comparisons());
        all.merge(arithmetic());
        return all;
    }();
    return table;
}

}  // namespace

Expr minimum_of(const Expr &a, const Expr &b) {
    if (a.type().is_bool()) {
        return a && b;
    }
    if (!a.type().is_float()) {
        return Halide::min(a, b);
    }
    const Strict x(a), y(b);
    return select(is_nan(y), y, select(y < x, y, x)).expr();
}

Expr maximum_of(const Expr &a, const Expr &b) {
    if (a.type().is_bool()) {
        return a || b;
    }
    if (!a.type().is_float()) {
        return Halide::max(a, b);
    }
    const Strict x(a), y(b);
    return select(is_nan(y), y, select(y > x, y, x)).expr();
}

Expr expand_primitive(std::string_view name, Type type, const Args &args) {
    const auto found = expansions().find(name);
    internal_assert(found != expansions().end(), "the CPU target has no expansion for the primitive tw.{}", name);
    for (const Expr &arg : args) {
        internal_assert(!arg.type().is_float() || arg.type().bits() >= 32, "tw.{} is given a float of {} bits", name, arg.type().bits());
    }
    return found->second(type, args);
}

}  // namespace tilewright
