// The choice among noisy times.
#include <doctest/doctest.h>

#include <random>

#include "autotune/measure/estimator.h"

using tilewright::choose_fastest;
using tilewright::median;

namespace {

/// Times in turn on a machine that drifts, jitters, and is interrupted in one round of ten.
std::vector<std::vector<double>> noisy(const std::vector<double> &true_seconds, int rounds, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform;
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> times(true_seconds.size());
    for (int round = 0; round < rounds; ++round) {
        const double drift = 1 + 0.3 * round / rounds;
        for (std::size_t c = 0; c < times.size(); ++c) {
            const double interruption = uniform(random) < 0.1 ? 5 : 0;
            times[c].push_back(true_seconds[c] * (drift * (1 + 0.01 * std::abs(normal(random))) + interruption));
        }
    }
    return times;
}

}  // namespace

TEST_CASE("median") {
    CHECK(median({3, 1, 2}) == 2);
    CHECK(median({4, 1, 2, 3}) == 2.5);
    CHECK(median({}) > 1e300);
}

TEST_CASE("a clear winner is found whatever the noise") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        CHECK(choose_fastest(noisy({10e-6, 9e-6, 12e-6, 9.5e-6}, 15, seed)) == 1);
    }
}

TEST_CASE("noise alone does not replace the default") {
    int replaced = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        replaced += choose_fastest(noisy({10e-6, 10e-6, 10e-6}, 15, seed)) != 0 ? 1 : 0;
    }
    CHECK(replaced <= 10);
}

TEST_CASE("candidates without times") {
    CHECK(choose_fastest({}) == 0);
    const std::vector<std::vector<double>> only_second{{}, {1.0}};
    CHECK(choose_fastest(only_second) == 1);
    const std::vector<std::vector<double>> only_first{{1.0}, {}};
    CHECK(choose_fastest(only_first) == 0);
}
