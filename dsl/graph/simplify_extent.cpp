#include "dsl/graph/simplify_extent.h"

#include <optional>

namespace tilewright {
namespace {

using Kind = Extent::Kind;

/// Operands that never win against another are dropped.
Extent simplify_extremum(Kind kind, const std::vector<Extent> &operands, const SymbolRanges &ranges) {
    std::vector<SymbolRange> bounds;
    for (const Extent &operand : operands) {
        bounds.push_back(operand.bounds(ranges));
    }
    std::optional<Extent> result;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        bool beaten = false;
        for (std::size_t j = 0; j < operands.size() && !beaten; ++j) {
            const bool wins = kind == Kind::max ? bounds[j].min >= bounds[i].max : bounds[j].max <= bounds[i].min;
            const bool tie = kind == Kind::max ? bounds[i].min >= bounds[j].max : bounds[i].max <= bounds[j].min;
            beaten = j != i && wins && !(tie && i < j);
        }
        if (!beaten) {
            result = !result ? operands[i] : kind == Kind::max ? max(*result, operands[i]) : min(*result, operands[i]);
        }
    }
    return *result;
}

/// Whether 0 <= value < divisor throughout.
bool is_below(const Extent &value, const Extent &divisor, const SymbolRanges &ranges) {
    const SymbolRange bounds = value.bounds(ranges);
    return bounds.min >= 0 && bounds.max < divisor.bounds(ranges).min;
}

}  // namespace

Extent simplify(const Extent &extent, const SymbolRanges &ranges) {
    std::vector<Extent> operands;
    for (const Extent &operand : extent.operands()) {
        operands.push_back(simplify(operand, ranges));
    }
    switch (extent.kind()) {
        case Kind::constant:
        case Kind::symbol:
            return extent;
        case Kind::min:
        case Kind::max:
            return simplify_extremum(extent.kind(), operands, ranges);
        case Kind::mod:
            return is_below(operands[0], operands[1], ranges) ? operands[0] : mod(operands[0], operands[1]);
        case Kind::floor_div:
            return is_below(operands[0], operands[1], ranges) ? Extent(0) : floor_div(operands[0], operands[1]);
        case Kind::sum:
        case Kind::product:
            break;
    }
    Extent result = operands[0];
    for (std::size_t i = 1; i < operands.size(); ++i) {
        result = extent.kind() == Kind::sum ? result + operands[i] : result * operands[i];
    }
    return result;
}

}  // namespace tilewright
