#include "autotune/inputs/given_sizes.h"

#include <algorithm>

#include "dsl/error.h"

namespace tilewright {

SymbolValues usual_sizes(const SymbolRanges &allowed) {
    constexpr std::int64_t usual = 64;
    SymbolValues values;
    for (const auto &[symbol, range] : allowed) {
        values.emplace(symbol, std::clamp(usual, range.min, range.max));
    }
    return values;
}

void apply_sizes(const std::map<std::string, std::int64_t> &given, const SymbolRanges &allowed, SymbolValues &values) {
    for (const auto &[symbol, value] : given) {
        const auto range = allowed.find(symbol);
        if (range == allowed.end()) {
            std::string known;
            for (const auto &[other, ignored] : allowed) {
                known += (known.empty() ? "" : ", ") + other;
            }
            user_error("size {}: the model has no such symbol; it has {}", symbol, known.empty() ? "none" : known);
        }
        if (value < range->second.min || value > range->second.max) {
            user_error("size {}={}: the model allows {} to {}", symbol, value, range->second.min, range->second.max);
        }
        values[symbol] = value;
    }
}

}  // namespace tilewright
