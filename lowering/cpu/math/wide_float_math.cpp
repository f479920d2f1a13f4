#include "lowering/cpu/math/wide_float_math.h"

#include <array>
#include <cmath>

namespace tilewright::float_math {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::UInt;
using Halide::Internal::make_const;

namespace {

constexpr double infinity = HUGE_VAL;
constexpr double two_over_pi = 0.636619772367581343076;
constexpr double quarter_turn = 1.57079632679489661923;
// A quarter turn in two parts: the first has 25 bits, so that its product with a number of quarter turns below 2^28 is exact.
constexpr double quarter_turn_high = 1.57079631090164184570;
constexpr double quarter_turn_low = 1.58932547735281966916e-8;
constexpr double far = 268435456.0;  ///< beyond it arguments are reduced by integers
constexpr double ln2 = 0.693147180559945309417;
constexpr double to_integer = 6755399441055744.0;  ///< 1.5 * 2^52: leaves an integral value in the low bits

Strict wide(const Strict &x) { return Strict(cast(Float(64), x.expr())); }
Strict narrow(const Strict &x) { return Strict(cast(Float(32), x.expr())); }
Expr word(std::uint32_t bits) { return make_const(UInt(32), bits); }
Expr long_word(std::uint64_t bits) { return Halide::Internal::UIntImm::make(UInt(64), bits); }

/// Nearest integer of |x| < 2^31.
struct Rounded {
    Strict value;
    Expr integer;
};

Rounded round_to_integer(const Strict &x) {
    const Strict shifted = x + to_integer;
    return {shifted - to_integer, reinterpret(Int(32), cast(UInt(32), bits_of(shifted) & long_word(0xffffffff)))};
}

/// x = quarters * pi/2 + rest, the rest within an eighth of a turn.
struct Reduced {
    Strict rest;
    Expr quarters;  ///< the last two bits count
};

Reduced reduce_near(const Strict &x) {
    const Strict d = wide(x);
    const Rounded n = round_to_integer(d * two_over_pi);
    return {d - n.value * quarter_turn_high - n.value * quarter_turn_low, n.integer};
}

/// The words of 1 / (2 pi), from its point on.
constexpr std::array<std::uint32_t, 7> turns_of_one = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea};

/// Word `place` + `offset` for a place from 0 to 4; zero before the first.
Expr turn_word(const Expr &place, int offset) {
    Expr chosen = word(turns_of_one[4 + offset]);
    for (int i = 3; i >= 0; i--) {
        chosen = Halide::select(place == i, word(i + offset < 0 ? 0 : turns_of_one[i + offset]), chosen);
    }
    return chosen;
}

/// The 32 bits that begin `shift` < 32 bits into two words.
Expr shifted_in(const Expr &high, const Expr &low, const Expr &shift) {
    const Expr both = (cast(UInt(64), high) << 32) | cast(UInt(64), low);
    return cast(UInt(32), (both << cast(UInt(64), shift)) >> 32);
}

/// Payne and Hanek 1983, for |x| >= 2^28: the mantissa times those bits of 1 / (2 pi) that decide the place within a turn.
Reduced reduce_far(const Strict &x) {
    const Expr mantissa = ((bits_of(x) & word(0x007fffff)) | word(0x00800000)) << 8;
    const Expr exponent = ((bits_of(x) >> 23) & word(0xff)) - word(126);
    const Expr place = (exponent >> 5) & word(7), shift = exponent & word(31);
    const Expr w0 = turn_word(place, -1), w1 = turn_word(place, 0), w2 = turn_word(place, 1), w3 = turn_word(place, 2);
    const Expr high = shifted_in(w0, w1, shift), middle = shifted_in(w1, w2, shift), low = shifted_in(w2, w3, shift);
    const Expr m = cast(UInt(64), mantissa);
    const Expr carried = m * cast(UInt(64), middle) + ((m * cast(UInt(64), low)) >> 32);
    const Expr turns = (cast(UInt(64), mantissa * high) << 32) + carried;  // in units of 2^-64 turns
    const Expr nearest = turns + long_word(std::uint64_t{1} << 61);
    const Expr rest = reinterpret(Int(64), (nearest & long_word((std::uint64_t{1} << 62) - 1))) -
                      Halide::Internal::IntImm::make(Int(64), std::int64_t{1} << 61);
    const Strict angle = Strict(cast(Float(64), rest)) * (quarter_turn * 0x1p-62);
    const Expr quarters = reinterpret(Int(32), cast(UInt(32), nearest >> 62));
    const Expr negative = sign_bit(x);
    return {select(negative, negate(angle), angle), Halide::select(negative, -quarters, quarters)};
}

Reduced reduce(const Strict &x) {
    const Expr is_far = absolute(x) > far;
    const Reduced near = reduce_near(select(is_far, 0.0, x)), distant = reduce_far(x);
    return {select(is_far, distant.rest, near.rest), Halide::select(is_far, distant.quarters, near.quarters)};
}

// Polynomials of FreeBSD's k_sinf.c and k_cosf.c.
Strict sin_of_rest(const Strict &r) {
    const Strict z = r * r, s = z * r;
    const Strict tail = z * 0.0000027183114939898219064 + -0.000198393348360966317347;
    return (r + s * (z * 0.0083333293858894631756 + -0.166666666416265235595)) + s * (z * z) * tail;
}

Strict cos_of_rest(const Strict &r) {
    const Strict z = r * r, w = z * z;
    const Strict tail = z * 0.0000243904487962774090654 + -0.00138867637746099294692;
    return ((z * -0.499999997251031003120 + 1.0) + w * 0.0416666233237390631894) + (w * z) * tail;
}

/// Neither an infinity nor NaN has an angle.
Strict of_angle(const Strict &x, const Strict &value) { return select(is_finite(x), narrow(value), x.like(std::nan(""))); }

/// sin(x + quarters * pi/2), in float64.
Strict sin_from(const Reduced &reduced, int quarters) {
    const Expr place = reduced.quarters + quarters;
    const Strict value = select((place & 1) != 0, cos_of_rest(reduced.rest), sin_of_rest(reduced.rest));
    return select((place & 2) != 0, negate(value), value);
}

/// log2 of a positive number, in float64, to 40 bits.
Strict log2_wide(const Strict &x) {
    const Expr root_half = long_word(0x3fe6a09e667f3bcd);
    const Expr offset = bits_of(x) - root_half;
    const Strict exponent(cast(Float(64), cast(Int(32), reinterpret(Int(64), offset) >> 52)));
    const Strict f = from_bits((offset & long_word(0x000fffffffffffff)) + root_half) - 1.0;
    const Strict s = f / (2.0 + f);
    const Strict series = polynomial(s * s, {2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0});
    return exponent + s * series * (1 / ln2);
}

/// 2^x in float64, to 36 bits; |x| is cut off where float32 has long ended.
Strict exp2_wide(const Strict &x) {
    const Strict above = select(x < -300.0, -300.0, x);
    const Strict limited = select(above > 300.0, 300.0, above);
    const Rounded n = round_to_integer(limited);
    const Strict r = (limited - n.value) * ln2;
    const Strict power =
        polynomial(r, {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
    return power * from_bits(reinterpret(UInt(64), cast(Int(64), n.integer) + Expr(std::int64_t{1023})) << 52);
}

}  // namespace

Strict sin(const Strict &x) { return select(x == 0.0, x, of_angle(x, sin_from(reduce(x), 0))); }

Strict cos(const Strict &x) { return of_angle(x, sin_from(reduce(x), 1)); }

Strict tan(const Strict &x) {
    const Reduced reduced = reduce(x);
    return select(x == 0.0, x, of_angle(x, sin_from(reduced, 0) / sin_from(reduced, 1)));
}

Strict pow(const Strict &x, const Strict &y) {
    const Strict magnitude = absolute(x);
    const Expr is_small = absolute(y) < 16777216.0;  // a larger number is an even integer
    const Strict bounded = select(is_small, y, y.like(0.0));
    const Expr truncated = cast(Int(32), bounded.expr());
    const Expr is_integral = !is_small || Strict(cast(Float(32), truncated)) == bounded;
    const Expr is_odd = is_small && is_integral && (truncated & 1) != 0;
    // Zero has the logarithm of less than the smallest number to any power that float32 tells apart.
    const Strict base = wide(magnitude);
    const Strict logarithm = select(magnitude == 0.0, -infinity, select(magnitude == infinity, infinity, log2_wide(base)));
    const Strict product = logarithm * wide(y);
    const Strict power = narrow(exp2_wide(product));
    const Strict plain = select(magnitude == 1.0, 1.0, power);
    const Strict with_sign = select(sign_bit(x) && is_odd, negate(plain), plain);
    const Expr is_undefined = x < 0.0 && is_finite(x) && !is_integral;
    const Strict value = select(is_undefined || is_nan(x) || is_nan(y), std::nan(""), with_sign);
    return select(x == 1.0 || y == 0.0, 1.0, value);
}

}  // namespace tilewright::float_math
