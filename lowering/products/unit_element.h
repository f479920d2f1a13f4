// Element types that the matrix unit multiplies, and the factors of a product as it takes them.
#pragma once

#include <Halide.h>
#include <optional>
#include <string>
#include <utility>

namespace tilewright {

enum class UnitElement { float16, bfloat16, tf32, int8, uint8, float8_e4m3, float8_e5m2 };

int unit_bytes(UnitElement element);
std::string device_type(UnitElement element);  ///< "tw::half", …
Halide::Type unit_sum_type(UnitElement element);
bool multiply_together(UnitElement a, UnitElement b);
/// Columns that one instruction multiplies (device/multiply.h, multiply_rows.h); `in_registers`: with the left operand there.
bool is_unit_width(int columns, int bytes, bool in_registers);

/// A factor below the conversions that lose nothing; float32 itself counts as tf32. Empty for what the unit knows no type of.
struct UnitFactor {
    Halide::Expr value;
    UnitElement element;
};
std::optional<UnitFactor> unit_factor(const Halide::Expr &factor);

/// Of a product of floats, or of integers that wrap.
std::optional<std::pair<Halide::Expr, Halide::Expr>> factors_of(const Halide::Expr &term);

}  // namespace tilewright
