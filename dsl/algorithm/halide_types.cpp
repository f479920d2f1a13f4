#include <mutex>

#include "dsl/algorithm/algorithm.h"
#include "dsl/error.h"

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// Symbols of one name share one parameter, so that a value bound to it reaches every Func that mentions it.
Halide::Parameter symbol_parameter(const std::string &name) {
    static std::mutex mutex;
    static std::map<std::string, Halide::Parameter> parameters;
    std::lock_guard lock(mutex);
    auto found = parameters.find(name);
    if (found == parameters.end()) {
        found = parameters.emplace(name, Halide::Parameter(Halide::Int(32), false, 0, name)).first;
    }
    return found->second;
}

Expr constant_to_halide(std::int64_t value) {
    if (value > INT32_MAX || value < INT32_MIN) {
        user_error("{} elements along one axis: an axis holds at most 2147483647; split it into two dimensions", value);
    }
    return hi::IntImm::make(Halide::Int(32), value);
}

}  // namespace

Expr to_halide(const Extent &extent) {
    if (auto value = extent.constant()) {
        return constant_to_halide(*value);
    }
    if (extent.kind() == Extent::Kind::symbol) {
        const std::string &name = extent.symbol_name();
        return hi::Variable::make(Halide::Int(32), name, symbol_parameter(name));
    }
    Expr result;
    for (const Extent &operand : extent.operands()) {
        Expr next = to_halide(operand);
        if (!result.defined()) {
            result = next;
            continue;
        }
        switch (extent.kind()) {
            case Extent::Kind::sum:
                result = result + next;
                break;
            case Extent::Kind::product:
                result = result * next;
                break;
            case Extent::Kind::floor_div:
                result = result / next;
                break;
            case Extent::Kind::mod:
                result = result % next;
                break;
            case Extent::Kind::min:
                result = min(result, next);
                break;
            case Extent::Kind::max:
                result = max(result, next);
                break;
            default:
                internal_error("extent {} has operands but no operation", extent.to_string());
        }
    }
    internal_assert(result.defined(), "extent {} has no operands", extent.to_string());
    return result;
}

namespace {

template<typename Operation> std::optional<Extent> binary_from_halide(const Expr &a, const Expr &b, Operation operation) {
    auto left = from_halide(a), right = from_halide(b);
    if (!left || !right) {
        return std::nullopt;
    }
    return operation(*left, *right);
}

}  // namespace

std::optional<Extent> from_halide(const Expr &e) {
    if (const auto *imm = e.as<hi::IntImm>()) {
        return Extent(imm->value);
    }
    if (const auto *imm = e.as<hi::UIntImm>()) {
        return Extent(static_cast<std::int64_t>(imm->value));
    }
    if (const auto *variable = e.as<hi::Variable>()) {
        bool symbol = variable->param.defined() && !variable->param.is_buffer();
        return symbol ? std::optional(Extent::symbol(variable->name)) : std::nullopt;
    }
    if (const auto *op = e.as<hi::Add>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return a + b; });
    }
    if (const auto *op = e.as<hi::Sub>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return a - b; });
    }
    if (const auto *op = e.as<hi::Mul>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return a * b; });
    }
    if (const auto *op = e.as<hi::Div>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return floor_div(a, b); });
    }
    if (const auto *op = e.as<hi::Mod>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return mod(a, b); });
    }
    if (const auto *op = e.as<hi::Min>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return min(a, b); });
    }
    if (const auto *op = e.as<hi::Max>()) {
        return binary_from_halide(op->a, op->b, [](const Extent &a, const Extent &b) { return max(a, b); });
    }
    if (const auto *op = e.as<hi::Let>()) {
        return from_halide(hi::substitute(op->name, op->value, op->body));
    }
    return std::nullopt;
}

Halide::Type to_halide(DType type) {
    switch (type) {
        case DType::boolean:
            return Halide::UInt(1);
        case DType::uint8:
        case DType::float8_e4m3fn:  // bytes (float8.h)
        case DType::float8_e5m2:
            return Halide::UInt(8);
        case DType::int8:
            return Halide::Int(8);
        case DType::int16:
            return Halide::Int(16);
        case DType::int32:
            return Halide::Int(32);
        case DType::int64:
            return Halide::Int(64);
        case DType::uint16:
            return Halide::UInt(16);
        case DType::uint32:
            return Halide::UInt(32);
        case DType::uint64:
            return Halide::UInt(64);
        case DType::float16:
            return Halide::Float(16);
        case DType::bfloat16:
            return Halide::BFloat(16);
        case DType::float32:
            return Halide::Float(32);
        case DType::float64:
            return Halide::Float(64);
        default:
            user_error("element type {} is not supported; convert the tensor to float32 before it is used", name(type));
    }
}

DType from_halide(Halide::Type type) {
    if (type.is_bfloat()) {
        return DType::bfloat16;
    }
    if (type.is_float()) {
        return type.bits() == 16 ? DType::float16 : type.bits() == 32 ? DType::float32 : DType::float64;
    }
    bool is_signed = type.is_int();
    switch (type.bits()) {
        case 1:
            return DType::boolean;
        case 8:
            return is_signed ? DType::int8 : DType::uint8;
        case 16:
            return is_signed ? DType::int16 : DType::uint16;
        case 32:
            return is_signed ? DType::int32 : DType::uint32;
        case 64:
            return is_signed ? DType::int64 : DType::uint64;
        default:
            internal_error("no element type has {} bits", type.bits());
    }
}

}  // namespace tilewright
