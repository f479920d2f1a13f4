#include "lowering/cpu/math/conversions.h"

#include "lowering/cpu/math/strict.h"

namespace tilewright {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::Type;
using Halide::UInt;
using Halide::Internal::make_const;

namespace {

bool is_half(Type type) { return type.is_float() && !type.is_bfloat() && type.bits() == 16; }

Expr widen_bfloat(const Expr &x) { return reinterpret(Float(32), cast(UInt(32), reinterpret(UInt(16), x)) << 16); }

/// Round to nearest, ties to even, on the representation; every NaN becomes the quiet one that PyTorch writes.
Expr narrow_to_bfloat(const Expr &x) {
    const Expr bits = reinterpret(UInt(32), x);
    const Expr rounded = (bits + make_const(UInt(32), 0x7fff) + ((bits >> 16) & 1)) >> 16;
    const Expr word = Halide::select(is_nan(Strict(x)), make_const(UInt(32), 0x7fc0), rounded);
    return reinterpret(Halide::BFloat(16), cast(UInt(16), word));
}

Expr float_to_integer(Type type, const Expr &x) {
    if (type.bits() == 64) {
        if (type.is_int()) {
            return cast(type, x);
        }
        // Above 2^63 the signed conversion saturates.
        const Strict value(x);
        const Expr high =
            reinterpret(type, cast(Int(64), (value - 9223372036854775808.0).expr())) ^ make_const(type, std::uint64_t{1} << 63);
        return Halide::select(value < 9223372036854775808.0, reinterpret(type, cast(Int(64), x)), high);
    }
    if (type.bits() == 32 && type.is_uint()) {
        return cast(type, cast(Int(64), x));
    }
    return cast(type, cast(Int(32), x));
}

}  // namespace

Expr convert_value(Type type, const Expr &x) {
    const Type from = x.type();
    type = type.with_lanes(from.lanes());
    if (from == type) {
        return x;
    }
    if (from.is_bfloat()) {
        return convert_value(type, widen_bfloat(x));
    }
    if (is_half(from) && type != Float(32)) {
        return convert_value(type, cast(Float(32), x));
    }
    if (type.is_bool()) {
        return from.is_float() ? !(Strict(x) == 0.0) : x != Halide::Internal::make_zero(from);
    }
    if ((type.is_bfloat() || is_half(type)) && from != Float(32)) {
        return convert_value(type, convert_value(Float(32), x));
    }
    if (type.is_bfloat()) {
        return narrow_to_bfloat(x);
    }
    if (from.is_float() && !type.is_float()) {
        return float_to_integer(type, x);
    }
    return cast(type, x);
}

}  // namespace tilewright
