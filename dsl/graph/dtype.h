// Element types of tensors, with PyTorch's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class DType : std::uint8_t {
    boolean,
    uint8,
    int8,
    int16,
    int32,
    int64,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex32,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float8_e4m3fnuz,
    float8_e5m2fnuz,
    float8_e8m0fnu,
};

std::string_view name(DType type);                        ///< "float32", "bool", …
std::optional<DType> parse_dtype(std::string_view name);  ///< inverse of name()
int size_in_bytes(DType type);                            ///< of one element as stored
bool is_floating_point(DType type);                       ///< float16 … float64 and the float8 types
bool is_complex(DType type);
bool is_signed_integer(DType type);
bool is_integer(DType type);  ///< signed and unsigned; not boolean

/// Whether the compiler computes with it. Others are refused by name at import.
bool is_supported(DType type);

/// PyTorch's type promotion of two element types (torch.promote_types).
DType promote(DType a, DType b);

/// The type in which PyTorch computes a value of this type (float32 for float16 and bfloat16).
DType compute_type(DType type);

}  // namespace tilewright
