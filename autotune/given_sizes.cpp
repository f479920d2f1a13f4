#include "autotune/given_sizes.h"

#include "dsl/error.h"

namespace tilewright {

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
