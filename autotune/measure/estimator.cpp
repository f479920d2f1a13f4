#include "autotune/measure/estimator.h"

#include <algorithm>
#include <cmath>
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

double median_deviation(const std::vector<double> &values) {
    if (values.size() < 3) {
        return 0;
    }
    const double middle = median(values);
    std::vector<double> distances;
    for (const double value : values) {
        distances.push_back(std::abs(value - middle));
    }
    return median(std::move(distances));
}

int choose_fastest(std::span<const std::vector<double>> rounds, double margin) {
    int best = 0;
    double best_ratio = 1;
    for (std::size_t c = 1; c < rounds.size(); ++c) {
        if (rounds[0].empty()) {
            best = best == 0 && !rounds[c].empty() ? static_cast<int>(c) : best;
            continue;
        }
        std::vector<double> ratios;
        for (std::size_t r = 0; r < std::min(rounds[c].size(), rounds[0].size()); ++r) {
            ratios.push_back(rounds[c][r] / rounds[0][r]);
        }
        const double ratio = median(ratios);
        if (ratio < best_ratio && ratio < 1 - std::max(margin, 2 * median_deviation(ratios))) {
            best = static_cast<int>(c);
            best_ratio = ratio;
        }
    }
    return best;
}

}  // namespace tilewright
