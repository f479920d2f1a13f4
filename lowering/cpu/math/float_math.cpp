#include "lowering/cpu/math/float_math.h"

#include <cmath>

namespace tilewright::float_math {

using Halide::cast;
using Halide::Expr;
using Halide::Int;
using Halide::reinterpret;
using Halide::UInt;

namespace {

constexpr double infinity = HUGE_VAL;
constexpr double ln2 = 0.693147180559945309417;
constexpr double log2_e = 1.44269504088896340736;
// ln2 in two parts: the first has nine significant bits, so that its product with an exponent is exact.
constexpr double ln2_high = 0.693359375;
constexpr double ln2_low = -2.12194440054690583e-4;
constexpr double smallest_normal = 1.17549435082228750797e-38;

/// An integral value, as float and as Int(32).
struct Rounded {
    Strict value;
    Expr integer;
};

/// Nearest integer of |x| < 2^22: adding 1.5 * 2^23 leaves it in the low bits. NaN stays NaN.
Rounded round_to_integer(const Strict &x) {
    const Strict shifted = x + 12582912.0;
    return {shifted - 12582912.0, reinterpret(Int(32), bits_of(shifted) - bits_of(x.like(12582912.0)))};
}

Strict power_of_two(const Expr &exponent) {
    return from_bits((reinterpret(UInt(32), exponent) + Halide::Internal::make_const(UInt(32), 127)) << 23);
}

/// x * 2^exponent in two steps, so that neither overflow nor a denormal comes early.
Strict scale(const Strict &x, const Expr &exponent) {
    const Expr half = exponent >> 1;
    return x * power_of_two(half) * power_of_two(exponent - half);
}

/// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2. Coefficients of Cephes' expf.
Strict exp_tail(const Strict &r) {
    return polynomial(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
}

/// x = exponent * ln2 + remainder.
struct Reduced {
    Strict remainder;
    Rounded exponent;
};

Reduced reduce_by_ln2(const Strict &x) {
    Rounded n = round_to_integer(x * log2_e);
    return {x - n.value * ln2_high - n.value * ln2_low, n};
}

/// Limits x, keeping NaN.
Strict limit(const Strict &x, double low, double high) {
    const Strict above = select(x < low, low, x);
    return select(above > high, high, above);
}

/// x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)), for positive finite x, denormals too.
struct Split {
    Strict fraction;  ///< m - 1
    Strict exponent;
};

Split split_exponent(const Strict &x) {
    const Expr tiny = x < smallest_normal;
    const Strict scaled = select(tiny, x * 8388608.0, x);
    const Expr root_half = Halide::Internal::make_const(UInt(32), 0x3f3504f3);
    const Expr offset = bits_of(scaled) - root_half;
    const Expr exponent = (reinterpret(Int(32), offset) >> 23) - Halide::select(tiny, 23, 0);
    const Strict m = from_bits((offset & Halide::Internal::make_const(UInt(32), 0x007fffff)) + root_half);
    return {m - 1.0, Strict(cast(Halide::Float(32), exponent))};
}

/// log(1 + f) = f - f^2/2 + s * (f^2/2 + R). After FreeBSD's e_logf.c.
struct LogParts {
    Strict half_square;
    Strict correction;
};

LogParts log_parts(const Strict &f) {
    const Strict s = f / (2.0 + f);
    const Strict z = s * s;
    const Strict w = z * z;
    const Strict odd = z * (0.66666662693 + w * 0.28498786688);
    const Strict even = w * (0.40000972152 + w * 0.24279078841);
    const Strict half_square = 0.5 * f * f;
    return {half_square, s * (half_square + (even + odd))};
}

/// The values of a logarithm outside the positive finite numbers.
Strict log_special(const Strict &x, const Strict &finite) {
    const Strict positive = select(x == infinity, infinity, finite);
    const Strict zero = select(x == 0.0, -infinity, positive);
    const Expr outside = (x < 0.0) || is_nan(x);
    return select(outside, std::nan(""), zero);
}

/// log(x) * 1/log(base), with the factor in two parts so that powers of the base come out exact.
Strict log_in_base(const Strict &x, double exponent_high, double exponent_low, double factor_high, double factor_low) {
    const Split parts = split_exponent(x);
    const LogParts logarithm = log_parts(parts.fraction);
    const Strict rough = parts.fraction - logarithm.half_square;
    const Strict high = from_bits(bits_of(rough) & Halide::Internal::make_const(UInt(32), 0xfffff000));
    const Strict low = (parts.fraction - high) - logarithm.half_square + logarithm.correction;
    const Strict tail = parts.exponent * exponent_low + (low + high) * factor_low + low * factor_high;
    return log_special(x, tail + high * factor_high + parts.exponent * exponent_high);
}

}  // namespace

Strict exp(const Strict &x) {
    const Reduced reduced = reduce_by_ln2(limit(x, -104.0, 89.0));
    const Strict &r = reduced.remainder;
    return scale(exp_tail(r) * (r * r) + r + 1.0, reduced.exponent.integer);
}

Strict exp2(const Strict &x) {
    const Strict limited = limit(x, -151.0, 129.0);
    const Rounded n = round_to_integer(limited);
    const Strict r = (limited - n.value) * ln2;
    return scale(exp_tail(r) * (r * r) + r + 1.0, n.integer);
}

Strict expm1(const Strict &x) {
    // 2^n * (e^r - 1) + (2^n - 1); at n = 128 half of it is formed first.
    const Reduced reduced = reduce_by_ln2(limit(x, -18.0, 89.0));
    const Strict &r = reduced.remainder;
    const Strict small = exp_tail(r) * (r * r) + r;
    const Expr top = reduced.exponent.integer == 128;
    const Strict power = power_of_two(reduced.exponent.integer - Halide::select(top, 1, 0));
    const Strict value = power * small + (power - select(top, 0.5, x.like(1.0)));
    const Strict doubled = select(top, value * 2.0, value);
    return select(x == 0.0, x, doubled);
}

Strict log(const Strict &x) {
    const Split parts = split_exponent(x);
    const LogParts logarithm = log_parts(parts.fraction);
    const Strict tail = logarithm.correction + parts.exponent * 9.0580006145e-6;
    return log_special(x, tail - logarithm.half_square + parts.fraction + parts.exponent * 6.9313812256e-1);
}

Strict log2(const Strict &x) { return log_in_base(x, 1.0, 0.0, 1.4428710938, -1.7605285393e-4); }

Strict log10(const Strict &x) { return log_in_base(x, 3.0102920532e-1, 7.9034151668e-7, 4.3432617188e-1, -3.1689971365e-5); }

Strict log1p(const Strict &x) {
    // Goldberg 1991, theorem 4: the rounding of 1 + x cancels in the quotient.
    const Strict u = 1.0 + x;
    const Strict difference = u - 1.0;
    const Strict ratio = log(u) * (x / difference);
    return select((u == 1.0) || (u == infinity), x, ratio);
}

Strict tanh(const Strict &x) {
    const Strict magnitude = absolute(x);
    const Strict t = expm1(limit(magnitude, 0.0, 12.0) * 2.0);
    return copy_sign(t / (t + 2.0), x);
}

Strict erf(const Strict &x) {
    // Two minimax polynomials that meet at 475/512: 1 - e^p(|x|) above, x + x * q(x^2) below.
    const Strict t = limit(absolute(x), 0.0, 4.0);
    const Strict square = t * t;
    const Strict upper = polynomial(t, {-1.72853470e-5, 3.83197126e-4});
    const Strict middle = polynomial(t, {-3.88396438e-3, 2.42546219e-2});
    Strict exponent = upper * square + middle;
    exponent = exponent * t + -1.06777877e-1;
    exponent = exponent * t + -6.34846687e-1;
    exponent = exponent * t + -1.28717512e-1;
    exponent = exponent * t - t;
    const Strict large = copy_sign(1.0 - exp(exponent), x);
    const Strict q = polynomial(square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
    return select(t > 0.927734375, large, q * x + x);
}

}  // namespace tilewright::float_math
