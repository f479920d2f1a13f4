#include "lowering/cpu/math/float8_math.h"

#include <cmath>

#include "lowering/cpu/math/strict.h"

namespace tilewright {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::reinterpret;
using Halide::select;
using Halide::UInt;
using Halide::Internal::make_const;

namespace {

Expr word(std::uint32_t value) { return make_const(UInt(32), value); }

constexpr std::uint32_t float_infinity = 0x7f800000, float_nan = 0x7fc00000;

}  // namespace

Expr float8_value(const Float8Format &format, const Expr &byte) {
    const int m = format.mantissa;
    const Expr bits = cast(UInt(32), byte), magnitude = bits & 0x7f;
    const float unit = std::ldexp(1.0F, 1 - format.bias - m);  // of what has no leading one
    const Expr small = reinterpret(UInt(32), (Strict(cast(Float(32), magnitude)) * unit).expr());
    const Expr normal = (magnitude << (23 - m)) + word(static_cast<std::uint32_t>(127 - format.bias) << 23);
    Expr value = select(magnitude < (1 << m), small, normal);
    value = format.has_infinities ? select(magnitude > 0x7c, word(float_nan), select(magnitude == 0x7c, word(float_infinity), value))
                                  : select(magnitude == 0x7f, word(float_nan), value);
    return reinterpret(Float(32), value | ((bits & 0x80) << 24));
}

Expr float8_bits(const Float8Format &format, const Expr &value) {
    const int m = format.mantissa, dropped = 23 - m;
    const Expr bits = reinterpret(UInt(32), value), magnitude = bits & word(0x7fffffff);
    const Expr last = (magnitude >> dropped) & 1;
    const Expr normal =
        ((magnitude + word((1U << (dropped - 1)) - 1) + last) >> dropped) - word(static_cast<std::uint32_t>(127 - format.bias) << m);
    // Added to a number whose last place is the smallest value of the format, a float is rounded to it.
    const float scale = std::ldexp(1.0F, 23 + 1 - format.bias - m);
    const Expr sum = (Strict(reinterpret(Float(32), magnitude)) + scale).expr();
    const Expr small = reinterpret(UInt(32), sum) - reinterpret(UInt(32), Expr(scale));
    Expr result = select(magnitude < word(static_cast<std::uint32_t>(128 - format.bias) << 23), small, normal);
    result = format.has_infinities
                 ? select(magnitude > word(float_infinity), word(0x7f), select(magnitude >= word(143U << 23), word(0x7c), result))
                 : select(magnitude >= word(1087U << 20), word(0x7f), result);  // 480 and more
    return cast(UInt(8), result | ((bits >> 24) & 0x80));
}

}  // namespace tilewright
