// What an extent is worth: evaluation, bounds, substitution.
#include <algorithm>

#include "dsl/error.h"
#include "dsl/graph/extent_expression.h"

namespace tilewright {
namespace {

using Kind = Extent::Kind;
using Wide = __int128;

std::int64_t clamp(Wide value) { return static_cast<std::int64_t>(std::clamp<Wide>(value, INT64_MIN, INT64_MAX)); }

SymbolRange add(SymbolRange a, SymbolRange b) { return {clamp(Wide(a.min) + b.min), clamp(Wide(a.max) + b.max)}; }

SymbolRange multiply(SymbolRange a, SymbolRange b) {
    const Wide corners[] = {Wide(a.min) * b.min, Wide(a.min) * b.max, Wide(a.max) * b.min, Wide(a.max) * b.max};
    return {clamp(*std::min_element(corners, corners + 4)), clamp(*std::max_element(corners, corners + 4))};
}

Wide floor_quotient(Wide a, Wide b) {
    const Wide quotient = a / b;
    return quotient - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0);
}

constexpr SymbolRange everything{INT64_MIN, INT64_MAX};

SymbolRange divide(SymbolRange a, SymbolRange b) {
    if (b.min <= 0 && b.max >= 0) {
        // The divisor is never 0 in a valid program, but which side it lies on may be unknown.
        if (b.min == 0 && b.max > 0) {
            b.min = 1;
        } else if (b.max == 0 && b.min < 0) {
            b.max = -1;
        } else {
            return everything;
        }
    }
    const Wide corners[] = {floor_quotient(a.min, b.min), floor_quotient(a.min, b.max), floor_quotient(a.max, b.min),
                            floor_quotient(a.max, b.max)};
    return {clamp(*std::min_element(corners, corners + 4)), clamp(*std::max_element(corners, corners + 4))};
}

SymbolRange remainder(SymbolRange a, SymbolRange b) {
    if (b.min >= 0) {
        if (a.min >= 0 && a.max < b.min) {
            return a;
        }
        const std::int64_t most = b.max == INT64_MAX ? INT64_MAX : std::max<std::int64_t>(b.max - 1, 0);
        return {0, a.min >= 0 ? std::min(a.max, most) : most};
    }
    return b.max <= 0 ? SymbolRange{clamp(Wide(b.min) + 1), 0} : everything;
}

}  // namespace

std::int64_t Extent::evaluate(const SymbolValues &symbols) const {
    const Expression &e = *expression_;
    const auto operand = [&](std::size_t i) { return e.operands[i].evaluate(symbols); };
    switch (e.kind) {
        case Kind::constant:
            return e.value;
        case Kind::symbol: {
            const auto found = symbols.find(e.name);
            if (found == symbols.end()) {
                user_error("the size {} has no value; give it one, as in --sizes {}=8", e.name, e.name);
            }
            return found->second;
        }
        case Kind::floor_div:
            return checked_floor_div(operand(0), operand(1));
        case Kind::mod:
            return checked_mod(operand(0), operand(1));
        default:
            break;
    }
    std::int64_t result = operand(0);
    for (std::size_t i = 1; i < e.operands.size(); ++i) {
        const std::int64_t next = operand(i);
        bool overflow = false;
        switch (e.kind) {
            case Kind::sum:
                overflow = __builtin_add_overflow(result, next, &result);
                break;
            case Kind::product:
                overflow = __builtin_mul_overflow(result, next, &result);
                break;
            case Kind::min:
                result = std::min(result, next);
                break;
            default:
                result = std::max(result, next);
                break;
        }
        if (overflow) {
            user_error("the size {} overflows 64 bits at the given sizes; use smaller ones", to_string());
        }
    }
    return result;
}

SymbolRange Extent::bounds(const SymbolRanges &ranges) const {
    const Expression &e = *expression_;
    const auto operand = [&](std::size_t i) { return e.operands[i].bounds(ranges); };
    switch (e.kind) {
        case Kind::constant:
            return {e.value, e.value};
        case Kind::symbol: {
            const auto found = ranges.find(e.name);
            return found == ranges.end() ? SymbolRange{} : found->second;
        }
        case Kind::floor_div:
            return divide(operand(0), operand(1));
        case Kind::mod:
            return remainder(operand(0), operand(1));
        default:
            break;
    }
    SymbolRange result = operand(0);
    for (std::size_t i = 1; i < e.operands.size(); ++i) {
        const SymbolRange next = operand(i);
        switch (e.kind) {
            case Kind::sum:
                result = add(result, next);
                break;
            case Kind::product:
                result = multiply(result, next);
                break;
            case Kind::min:
                result = {std::min(result.min, next.min), std::min(result.max, next.max)};
                break;
            default:
                result = {std::max(result.min, next.min), std::max(result.max, next.max)};
                break;
        }
    }
    return result;
}

void Extent::collect_symbols(std::set<std::string> &into) const {
    if (kind() == Kind::symbol) {
        into.insert(expression_->name);
    }
    for (const Extent &operand : expression_->operands) {
        operand.collect_symbols(into);
    }
}

Extent Extent::substitute(const std::map<std::string, Extent> &values) const {
    const Expression &e = *expression_;
    if (e.kind == Kind::constant) {
        return *this;
    }
    if (e.kind == Kind::symbol) {
        const auto found = values.find(e.name);
        return found == values.end() ? *this : found->second;
    }
    Extent result = e.operands[0].substitute(values);
    for (std::size_t i = 1; i < e.operands.size(); ++i) {
        const Extent next = e.operands[i].substitute(values);
        switch (e.kind) {
            case Kind::sum:
                result = result + next;
                break;
            case Kind::product:
                result = result * next;
                break;
            case Kind::floor_div:
                result = floor_div(result, next);
                break;
            case Kind::mod:
                result = mod(result, next);
                break;
            case Kind::min:
                result = tilewright::min(result, next);
                break;
            default:
                result = tilewright::max(result, next);
                break;
        }
    }
    return result;
}

}  // namespace tilewright
