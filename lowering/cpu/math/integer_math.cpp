#include "lowering/cpu/math/integer_math.h"

#include "dsl/error.h"

namespace tilewright::integer_math {

using Halide::cast;
using Halide::reinterpret;
using Halide::select;
using Halide::Type;
using Halide::UInt;
using Halide::Internal::Call;
using Halide::Internal::make_const;
using Halide::Internal::make_one;
using Halide::Internal::make_zero;

namespace {

/// Halide's simplifier holds signed overflow to be impossible; unsigned arithmetic wraps.
Expr wrap(const Expr &x) { return x.type().is_int() ? reinterpret(UInt(x.type().bits()), x) : x; }

Expr unwrap(Type type, const Expr &x) { return type.is_int() ? reinterpret(type, x) : x; }

Expr is_minus_one(const Expr &b) { return b.type().is_int() ? b == make_const(b.type(), -1) : Halide::Internal::const_false(); }

/// Where b is 0 or -1 the hardware's division may trap: divides by 1 there.
struct Division {
    Expr zero, minus_one;
    Expr quotient, rest;  ///< truncated, of a / (b guarded)
};

Division divide(const Expr &a, const Expr &b) {
    Division d;
    d.zero = b == make_zero(b.type());
    d.minus_one = is_minus_one(b);
    const Expr safe = select(d.zero || d.minus_one, make_one(b.type()), b);
    if (a.type().is_uint()) {
        d.quotient = a / safe;
    } else {
        d.quotient = Call::make(a.type(), Call::div_round_to_zero, {a, safe}, Call::PureIntrinsic);
    }
    d.rest = sub(a, mul(d.quotient, safe));
    return d;
}

/// A constant divisor above zero needs no guard: Halide's own division is the floor there.
bool is_positive_constant(const Expr &b) { return Halide::Internal::is_const(b) && Halide::Internal::is_positive_const(b); }

/// The signs of a non-zero rest and of the divisor differ: truncation and floor differ by one.
Expr needs_correction(const Expr &rest, const Expr &b) {
    const Expr zero = make_zero(b.type());
    return rest != zero && ((rest < zero) != (b < zero));
}

}  // namespace

Expr add(const Expr &a, const Expr &b) { return unwrap(a.type(), wrap(a) + wrap(b)); }

Expr sub(const Expr &a, const Expr &b) { return unwrap(a.type(), wrap(a) - wrap(b)); }

Expr mul(const Expr &a, const Expr &b) { return unwrap(a.type(), wrap(a) * wrap(b)); }

Expr neg(const Expr &a) { return unwrap(a.type(), make_zero(wrap(a).type()) - wrap(a)); }

Expr abs(const Expr &a) { return a.type().is_int() ? select(a < make_zero(a.type()), neg(a), a) : a; }

Expr div_trunc(const Expr &a, const Expr &b) {
    const Division d = divide(a, b);
    return select(d.zero, make_zero(a.type()), d.minus_one, neg(a), d.quotient);
}

Expr div_floor(const Expr &a, const Expr &b) {
    if (is_positive_constant(b)) {
        return a / b;
    }
    const Division d = divide(a, b);
    const Expr floor =
        a.type().is_uint() ? d.quotient : select(needs_correction(d.rest, b), sub(d.quotient, make_one(a.type())), d.quotient);
    return select(d.zero, make_zero(a.type()), d.minus_one, neg(a), floor);
}

Expr fmod(const Expr &a, const Expr &b) {
    const Division d = divide(a, b);
    return select(d.zero || d.minus_one, make_zero(a.type()), d.rest);
}

Expr remainder(const Expr &a, const Expr &b) {
    if (is_positive_constant(b)) {
        return a % b;
    }
    const Division d = divide(a, b);
    const Expr signed_rest = a.type().is_uint() ? d.rest : select(needs_correction(d.rest, b), add(d.rest, b), d.rest);
    return select(d.zero || d.minus_one, make_zero(a.type()), signed_rest);
}

Expr shift_left(const Expr &a, const Expr &b) {
    const Type word = UInt(a.type().bits());
    const Expr amount = wrap(b);
    const Expr width = make_const(word, a.type().bits());
    const Expr shifted = wrap(a) << select(amount < width, amount, make_zero(word));
    return unwrap(a.type(), select(amount < width, shifted, make_zero(word)));
}

Expr shift_right(const Expr &a, const Expr &b) {
    const Type word = UInt(a.type().bits());
    const Expr amount = wrap(b);
    const Expr last = make_const(word, a.type().bits() - 1);
    const Expr shifted = a >> select(amount < last, amount, last);
    return a.type().is_int() ? shifted : select(amount <= last, shifted, make_zero(word));
}

Expr pow(const Expr &a, const Expr &b) {
    std::optional<std::int64_t> exponent = Halide::Internal::as_const_int(b);
    if (const auto unsigned_exponent = Halide::Internal::as_const_uint(b)) {
        exponent = static_cast<std::int64_t>(*unsigned_exponent);
    }
    if (exponent && *exponent >= 0 && *exponent <= 4) {
        Expr result = make_one(a.type());
        for (int i = 0; i < static_cast<int>(*exponent); i++) {
            result = mul(result, a);
        }
        return result;
    }
    const Type wide = Halide::Int(64);
    return cast(a.type(), Call::make(wide, "tilewright_pow_int64", {cast(wide, a), cast(wide, b)}, Call::PureExtern));
}

}  // namespace tilewright::integer_math
