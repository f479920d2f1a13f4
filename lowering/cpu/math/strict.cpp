#include "lowering/cpu/math/strict.h"

#include "dsl/error.h"

namespace tilewright {

using Halide::Expr;
using Halide::UInt;
using Halide::Internal::make_const;

FloatBits::FloatBits(Halide::Type type) {
    const Halide::Type word = UInt(type.bits());
    internal_assert(type.bits() == 32 || type.bits() == 64, "no bit masks for a float of {} bits", type.bits());
    const bool wide = type.bits() == 64;
    sign = make_const(word, std::uint64_t{1} << (type.bits() - 1));
    magnitude = make_const(word, wide ? std::uint64_t{0x7fffffffffffffff} : std::uint64_t{0x7fffffff});
    infinity = make_const(word, wide ? std::uint64_t{0x7ff0000000000000} : std::uint64_t{0x7f800000});
}

Expr is_nan(const Strict &x) {
    const FloatBits masks(x.type());
    return (bits_of(x) & masks.magnitude) > masks.infinity;
}

Expr is_infinite(const Strict &x) {
    const FloatBits masks(x.type());
    return (bits_of(x) & masks.magnitude) == masks.infinity;
}

Expr is_finite(const Strict &x) {
    const FloatBits masks(x.type());
    return (bits_of(x) & masks.magnitude) < masks.infinity;
}

Expr sign_bit(const Strict &x) { return (bits_of(x) & FloatBits(x.type()).sign) != 0; }

Strict absolute(const Strict &x) { return from_bits(bits_of(x) & FloatBits(x.type()).magnitude); }

Strict negate(const Strict &x) { return from_bits(bits_of(x) ^ FloatBits(x.type()).sign); }

Strict copy_sign(const Strict &magnitude, const Strict &sign) {
    const FloatBits masks(magnitude.type());
    return from_bits((bits_of(magnitude) & masks.magnitude) | (bits_of(sign) & masks.sign));
}

Strict polynomial(const Strict &x, const std::vector<double> &coefficients) {
    Strict sum = x.like(coefficients.front());
    for (std::size_t i = 1; i < coefficients.size(); i++) {
        sum = sum * x + coefficients[i];
    }
    return sum;
}

}  // namespace tilewright
