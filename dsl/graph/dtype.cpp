#include "dsl/graph/dtype.h"

#include <array>
#include <utility>

namespace tilewright {
namespace {

struct Facts {
    DType type;
    std::string_view name;
    int bytes;
    enum class Class { boolean, unsigned_integer, signed_integer, floating, complex } kind;
    bool supported;
};

using enum Facts::Class;
constexpr std::array facts = {
    Facts{DType::boolean, "bool", 1, boolean, true},
    Facts{DType::uint8, "uint8", 1, unsigned_integer, true},
    Facts{DType::int8, "int8", 1, signed_integer, true},
    Facts{DType::int16, "int16", 2, signed_integer, true},
    Facts{DType::int32, "int32", 4, signed_integer, true},
    Facts{DType::int64, "int64", 8, signed_integer, true},
    Facts{DType::uint16, "uint16", 2, unsigned_integer, true},
    Facts{DType::uint32, "uint32", 4, unsigned_integer, true},
    Facts{DType::uint64, "uint64", 8, unsigned_integer, true},
    Facts{DType::float16, "float16", 2, floating, true},
    Facts{DType::bfloat16, "bfloat16", 2, floating, true},
    Facts{DType::float32, "float32", 4, floating, true},
    Facts{DType::float64, "float64", 8, floating, true},
    Facts{DType::complex32, "complex32", 4, complex, false},
    Facts{DType::complex64, "complex64", 8, complex, false},
    Facts{DType::complex128, "complex128", 16, complex, false},
    Facts{DType::float8_e4m3fn, "float8_e4m3fn", 1, floating, true},
    Facts{DType::float8_e5m2, "float8_e5m2", 1, floating, true},
    Facts{DType::float8_e4m3fnuz, "float8_e4m3fnuz", 1, floating, false},
    Facts{DType::float8_e5m2fnuz, "float8_e5m2fnuz", 1, floating, false},
    Facts{DType::float8_e8m0fnu, "float8_e8m0fnu", 1, floating, false},
};

constexpr const Facts &of(DType type) { return facts[static_cast<std::size_t>(type)]; }

static_assert(
    [] {
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (static_cast<std::size_t>(facts[i].type) != i) {
                return false;
            }
        }
        return true;
    }(),
    "the table follows the order of DType");

}  // namespace

std::string_view name(DType type) { return of(type).name; }
int size_in_bytes(DType type) { return of(type).bytes; }
bool is_floating_point(DType type) { return of(type).kind == floating; }
bool is_complex(DType type) { return of(type).kind == complex; }
bool is_signed_integer(DType type) { return of(type).kind == signed_integer; }
bool is_integer(DType type) { return of(type).kind == signed_integer || of(type).kind == unsigned_integer; }
bool is_supported(DType type) { return of(type).supported; }

std::optional<DType> parse_dtype(std::string_view name) {
    for (const Facts &entry : facts) {
        if (entry.name == name) {
            return entry.type;
        }
    }
    return std::nullopt;
}

DType compute_type(DType type) { return type == DType::float16 || type == DType::bfloat16 ? DType::float32 : type; }

// c10/core/ScalarType.cpp: floats win over integers, integers over bool; of two in one class the wider wins, and where neither holds the
// other's values (float16 with bfloat16, uint8 with int8) the next wider that holds both.
DType promote(DType a, DType b) {
    if (a == b) {
        return a;
    }
    const auto rank = [](DType t) { return static_cast<int>(of(t).kind == unsigned_integer ? signed_integer : of(t).kind); };
    if (rank(a) != rank(b)) {
        return rank(a) > rank(b) ? a : b;
    }
    if (of(a).bytes < of(b).bytes) {
        std::swap(a, b);
    }
    if (of(a).kind == floating) {
        return of(a).bytes == of(b).bytes ? DType::float32 : a;
    }
    // Integers; a is at least as wide as b. A signed type as wide as an unsigned one does not hold it.
    if (of(a).kind == of(b).kind || (of(a).kind == signed_integer && of(a).bytes > of(b).bytes)) {
        return a;
    }
    switch (of(a).bytes) {
        case 1:
            return DType::int16;
        case 2:
            return DType::int32;
        default:
            return DType::int64;
    }
}

}  // namespace tilewright
