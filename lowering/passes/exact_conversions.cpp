#include "lowering/passes/exact_conversions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>

#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// What a conversion converts; undefined for another expression.
Expr converted(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    const bool converts = call && call->call_type != hi::Call::Halide &&
                          (math::primitive_name(call) == "convert" || math::primitive_name(call) == "explicit_cast");
    return converts ? call->args[0] : Expr();
}

bool is_half(const Halide::Type &type) { return type.is_float() && type.bits() == 16; }
/// Up to which size every whole number is one of the type.
std::int64_t largest_whole(const Halide::Type &type) { return std::int64_t{1} << (type.is_bfloat() ? 8 : type.bits() == 16 ? 11 : 24); }

/// A bound of the expression's size, where it is a whole number whatever is read.
std::optional<std::int64_t> whole_bound(const Expr &e);

std::optional<std::int64_t> bound_of_call(const hi::Call *call) {
    const auto bits = [](const Expr &b) {
        return hi::as_const_uint(b) ? static_cast<std::int64_t>(*hi::as_const_uint(b)) : hi::as_const_int(b).value_or(-1);
    };
    if (call->is_intrinsic(hi::Call::bitwise_and) && call->type.is_uint() && call->type.bits() <= 32) {
        const std::int64_t mask = bits(call->args[1]);
        return mask >= 0 ? std::optional(std::min(mask, whole_bound(call->args[0]).value_or(mask))) : whole_bound(call->args[0]);
    }
    const auto name = call->call_type == hi::Call::Halide ? std::string_view() : math::primitive_name(call);
    if (name == "shift_right" && call->type.is_uint() && bits(call->args[1]) >= 0 && bits(call->args[1]) < call->type.bits()) {
        const auto shifted = whole_bound(call->args[0]);
        return shifted ? std::optional(*shifted >> bits(call->args[1])) : std::nullopt;
    }
    if (name == "convert" || name == "explicit_cast") {
        const auto from = call->type.is_float() ? whole_bound(call->args[0]) : std::nullopt;
        return from && *from <= largest_whole(call->type) ? from : std::nullopt;
    }
    return std::nullopt;
}

/// Of a sum, a difference or a product in float32: as long as the result is whole, nothing is rounded.
template<class Size> std::optional<std::int64_t> bound_of_result(const Expr &a, const Expr &b, const Size &size) {
    const std::int64_t most = largest_whole(Halide::Float(32));
    const auto first = a.type() == Halide::Float(32) ? whole_bound(a) : std::nullopt, second = first ? whole_bound(b) : std::nullopt;
    return second && *first <= most && *second <= most && size(*first, *second) <= most ? std::optional(size(*first, *second))
                                                                                        : std::nullopt;
}

std::optional<std::int64_t> whole_bound(const Expr &e) {
    if (const auto *select = e.as<hi::Select>()) {
        const auto a = whole_bound(select->true_value), b = a ? whole_bound(select->false_value) : std::nullopt;
        return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
    }
    if (const auto *number = e.as<hi::FloatImm>()) {
        const bool is_whole = std::abs(number->value) <= 1 << 24 && number->value == std::trunc(number->value);
        return is_whole ? std::optional(static_cast<std::int64_t>(std::abs(number->value))) : std::nullopt;
    }
    if (const auto *sum = e.as<hi::Add>()) {
        return bound_of_result(sum->a, sum->b, std::plus<>());
    }
    if (const auto *difference = e.as<hi::Sub>()) {
        return bound_of_result(difference->a, difference->b, std::plus<>());
    }
    if (const auto *product = e.as<hi::Mul>()) {
        return bound_of_result(product->a, product->b, std::multiplies<>());
    }
    if (const auto *call = e.as<hi::Call>()) {
        if (const auto bound = bound_of_call(call)) {
            return bound;
        }
    }
    const Halide::Type type = e.type();
    return type.is_int_or_uint() && type.bits() == 8 ? std::optional<std::int64_t>(type.is_uint() ? 255 : 128) : std::nullopt;
}

class SkipExact : public hi::IRGraphMutator {
public:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        const Expr e = hi::IRGraphMutator::visit(op), between = converted(e), from = between.defined() ? converted(between) : Expr();
        if (!from.defined() || !is_half(between.type()) || !e.type().is_float() || e.type().bits() <= 16) {
            return e;
        }
        const auto bound = whole_bound(from);
        const bool is_exact = bound && *bound <= largest_whole(between.type());
        return !is_exact ? e : from.type() == e.type() ? from : math::convert(e.type(), from);
    }
};

}  // namespace

Expr skip_exact_conversions(const Expr &e) { return SkipExact().mutate(e); }

}  // namespace tilewright
