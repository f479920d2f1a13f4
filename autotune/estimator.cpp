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
    int best = 0;
    double best_ratio = 1 - margin;
    for (std::size_t c = 1; c < rounds.size(); ++c) {
        std::vector<double> ratios;
        for (std::size_t r = 0; r < std::min(rounds[c].size(), rounds[0].size()); ++r) {
            ratios.push_back(rounds[c][r] / rounds[0][r]);
        }
        const bool is_alone = rounds[0].empty() && !rounds[c].empty() && best == 0;
        const double ratio = median(std::move(ratios));
        if (ratio < best_ratio || is_alone) {
            best = static_cast<int>(c);
            best_ratio = ratio;
        }
    }
    return best;
}

}  // namespace tilewright
