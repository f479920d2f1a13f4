#include "autotune/estimator.h"

#include <algorithm>
#include <limits>

namespace tilewright {

double median(std::vector<double> values) {
    if (values.empty()) {
        return std::numeric_limits<double>::infinity();
    }
    const std::size_t middle = values.size() / 2;
    std::sort(values.begin(), values.end());
    return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

int choose_fastest(std::span<const std::vector<double>> rounds, double margin) {
    if (rounds.empty()) {
        return 0;
    }
    const std::vector<double> &incumbent = rounds[0];
    int best = 0;
    double best_median = median(incumbent) * (1 - margin);
    for (std::size_t c = 1; c < rounds.size(); ++c) {
        const double here = median(rounds[c]);
        const std::size_t shared = std::min(rounds[c].size(), incumbent.size());
        std::size_t wins = 0;
        for (std::size_t r = 0; r < shared; ++r) {
            wins += rounds[c][r] < incumbent[r] ? 1 : 0;
        }
        if (here < best_median && (shared == 0 || 2 * wins > shared)) {
            best = static_cast<int>(c);
            best_median = here;
        }
    }
    return best;
}

}  // namespace tilewright
