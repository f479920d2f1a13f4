#include "dsl/algorithm/float8.h"

#include "dsl/algorithm/math.h"

namespace tilewright {

bool is_float8(DType type) { return type == DType::float8_e4m3fn || type == DType::float8_e5m2; }

namespace math {

Halide::Expr float8_value(DType type, Halide::Expr byte) {
    return call(Halide::Float(32), type == DType::float8_e4m3fn ? "float8_e4m3_value" : "float8_e5m2_value", {std::move(byte)});
}

Halide::Expr float8_bits(DType type, Halide::Expr value) {
    return call(Halide::UInt(8), type == DType::float8_e4m3fn ? "float8_e4m3_bits" : "float8_e5m2_bits", {std::move(value)});
}

std::optional<DType> float8_of(const Halide::Internal::Call *call) {
    const std::string_view name = primitive_name(call);
    return name == "float8_e4m3_value"   ? std::optional(DType::float8_e4m3fn)
           : name == "float8_e5m2_value" ? std::optional(DType::float8_e5m2)
                                         : std::nullopt;
}

}  // namespace math
}  // namespace tilewright
