// Floating-point expressions that Halide's simplifier and LLVM leave alone: every operation is one of Halide's strict intrinsics.
#pragma once

#include <Halide.h>

namespace tilewright {

/// A float expression whose operators round once each and are never folded, reassociated or contracted.
class Strict {
public:
    explicit Strict(Halide::Expr value) : value_(std::move(value)) {}
    const Halide::Expr &expr() const { return value_; }
    Halide::Type type() const { return value_.type(); }
    /// `constant`, rounded to this value's type.
    Strict like(double constant) const { return Strict(Halide::Internal::make_const(type(), constant)); }

private:
    Halide::Expr value_;
};

namespace strict_detail {
inline Halide::Expr call(Halide::Type type, Halide::Internal::Call::IntrinsicOp op, const Strict &a, const Strict &b) {
    return Halide::Internal::Call::make(type, op, {a.expr(), b.expr()}, Halide::Internal::Call::PureIntrinsic);
}
}  // namespace strict_detail

inline Strict operator+(const Strict &a, const Strict &b) {
    return Strict(strict_detail::call(a.type(), Halide::Internal::Call::strict_add, a, b));
}
inline Strict operator-(const Strict &a, const Strict &b) {
    return Strict(strict_detail::call(a.type(), Halide::Internal::Call::strict_sub, a, b));
}
inline Strict operator*(const Strict &a, const Strict &b) {
    return Strict(strict_detail::call(a.type(), Halide::Internal::Call::strict_mul, a, b));
}
inline Strict operator/(const Strict &a, const Strict &b) {
    return Strict(strict_detail::call(a.type(), Halide::Internal::Call::strict_div, a, b));
}
inline Strict operator+(const Strict &a, double b) { return a + a.like(b); }
inline Strict operator-(const Strict &a, double b) { return a - a.like(b); }
inline Strict operator*(const Strict &a, double b) { return a * a.like(b); }
inline Strict operator/(double a, const Strict &b) { return b.like(a) / b; }
inline Strict operator+(double a, const Strict &b) { return b.like(a) + b; }
inline Strict operator-(double a, const Strict &b) { return b.like(a) - b; }
inline Strict operator*(double a, const Strict &b) { return b.like(a) * b; }

// Ordered comparisons: false where either side is NaN. Boolean expressions.
inline Halide::Expr operator<(const Strict &a, const Strict &b) {
    return strict_detail::call(Halide::Bool(a.type().lanes()), Halide::Internal::Call::strict_lt, a, b);
}
inline Halide::Expr operator==(const Strict &a, const Strict &b) {
    return strict_detail::call(Halide::Bool(a.type().lanes()), Halide::Internal::Call::strict_eq, a, b);
}
/// Not Halide's strict_le: it becomes !(b < a), which holds where either side is NaN.
inline Halide::Expr operator<=(const Strict &a, const Strict &b) { return a < b || a == b; }
inline Halide::Expr operator>(const Strict &a, const Strict &b) { return b < a; }
inline Halide::Expr operator>=(const Strict &a, const Strict &b) { return b <= a; }
inline Halide::Expr operator<(const Strict &a, double b) { return a < a.like(b); }
inline Halide::Expr operator>(const Strict &a, double b) { return a > a.like(b); }
inline Halide::Expr operator==(const Strict &a, double b) { return a == a.like(b); }

inline Strict select(const Halide::Expr &condition, const Strict &then, const Strict &otherwise) {
    return Strict(Halide::select(condition, then.expr(), otherwise.expr()));
}
inline Strict select(const Halide::Expr &condition, double then, const Strict &otherwise) {
    return select(condition, otherwise.like(then), otherwise);
}

/// The representation as an unsigned integer of the same width, and back.
inline Halide::Expr bits_of(const Strict &x) { return Halide::reinterpret(Halide::UInt(x.type().bits()), x.expr()); }
inline Strict from_bits(const Halide::Expr &bits) { return Strict(Halide::reinterpret(Halide::Float(bits.type().bits()), bits)); }

/// Unsigned constants of a float type's representation.
struct FloatBits {
    Halide::Expr sign, magnitude, infinity;
    explicit FloatBits(Halide::Type type);
};

// Tests on the representation: LLVM may assume that a value is no NaN, but never what its bits are.
Halide::Expr is_nan(const Strict &x);
Halide::Expr is_infinite(const Strict &x);
Halide::Expr is_finite(const Strict &x);
Halide::Expr sign_bit(const Strict &x);
Strict absolute(const Strict &x);
Strict negate(const Strict &x);
Strict copy_sign(const Strict &magnitude, const Strict &sign);

/// coefficients[0] * x^(n-1) + … + coefficients[n-1], by Horner's rule.
Strict polynomial(const Strict &x, const std::vector<double> &coefficients);

}  // namespace tilewright
