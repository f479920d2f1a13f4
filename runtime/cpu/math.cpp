#include "runtime/cpu/math.h"

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/bind_symbols.h"
#include "runtime/cpu/sort.h"

namespace tilewright {
namespace {

constexpr double pi = 3.14159265358979323846;

/// Wraps around as the integer type does.
std::int64_t pow_int64(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    std::uint64_t result = 1;
    auto factor = static_cast<std::uint64_t>(base);
    for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1) {
        if ((rest & 1) != 0) {
            result *= factor;
        }
        factor *= factor;
    }
    return static_cast<std::int64_t>(result);
}

/// Asymptotic series above 10, recurrence and reflection below (Abramowitz and Stegun, 6.3.5, 6.3.7, 6.3.18).
double digamma(double x) {
    if (x == 0) {
        return std::copysign(HUGE_VAL, -x);
    }
    if (x < 0 && x == std::floor(x)) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (x < 0) {
        double whole = 0;
        const double fraction = std::modf(x, &whole);
        return digamma(1 - x) - pi / std::tan(pi * fraction);
    }
    double shift = 0;
    for (; x < 10; x += 1) {
        shift += 1 / x;
    }
    static constexpr std::array<double, 7> series = {8.33333333333333333333e-2,  -2.10927960927960927961e-2, 7.57575757575757575758e-3,
                                                     -4.16666666666666666667e-3, 3.96825396825396825397e-3,  -8.33333333333333333333e-3,
                                                     8.33333333333333333333e-2};
    double tail = 0;
    if (x < 1e17) {
        const double z = 1 / (x * x);
        for (const double coefficient : series) {
            tail = tail * z + coefficient;
        }
        tail *= z;
    }
    return std::log(x) - 0.5 / x - tail - shift;
}

double ratio(std::span<const double> numerator, std::span<const double> denominator, double z) {
    double above = 0, below = 0;
    for (std::size_t i = numerator.size(); i-- > 0;) {
        above = above * z + numerator[i];
    }
    for (std::size_t i = denominator.size(); i-- > 0;) {
        below = below * z + denominator[i];
    }
    return above / (below * z + 1);
}

/// Rational start values (as in MATLAB's erfinv), then three Newton steps.
double erfinv(double y) {
    static constexpr std::array<double, 4> a = {0.886226899, -1.645349621, 0.914624893, -0.140543331};
    static constexpr std::array<double, 4> b = {-2.118377725, 1.442710462, -0.329097515, 0.012229801};
    static constexpr std::array<double, 4> c = {-1.970840454, -1.624906493, 3.429567803, 1.641345311};
    static constexpr std::array<double, 2> d = {3.543889200, 1.637067800};
    const double magnitude = std::fabs(y);
    if (!(magnitude <= 1)) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (magnitude == 1) {
        return std::copysign(HUGE_VAL, y);
    }
    double x = 0;
    if (magnitude <= 0.7) {
        x = y * ratio(a, b, y * y);
    } else {
        const double z = std::sqrt(-std::log((1 - magnitude) / 2));
        x = std::copysign(ratio(c, d, z), y);
    }
    for (int step = 0; step < 3; step++) {
        // Near 1 the complement keeps the digits that erf has lost.
        const double excess = magnitude <= 0.7 ? std::erf(x) - y : ((1 - magnitude) - std::erfc(std::fabs(x))) * std::copysign(1.0, y);
        x -= excess / (2 / std::sqrt(pi) * std::exp(-x * x));
    }
    return x;
}

double log_gamma(double x) {
    int sign = 0;
    return lgamma_r(x, &sign);
}

void report(IndexStatus *status, std::int32_t site, std::int64_t index, std::int64_t size) {
    std::int32_t none = 0;
    if (std::atomic_ref(status->site_plus_one).compare_exchange_strong(none, site + 1)) {
        status->index = index;
        status->size = size;
    }
}

std::int32_t checked_index(IndexStatus *status, std::int64_t index, std::int64_t size, std::int32_t wrap, std::int32_t site) {
    const std::int64_t place = index < 0 && wrap != 0 ? index + size : index;
    if (place >= 0 && place < size) {
        return static_cast<std::int32_t>(place);
    }
    report(status, site, index, size);
    return 0;
}

std::int64_t checked_divisor(IndexStatus *status, std::int64_t divisor) {
    if (divisor != 0) {
        return divisor;
    }
    report(status, zero_divisor_site, 0, 0);
    return 1;
}

template<typename Function> RuntimeSymbol symbol(const char *name, Function *function) {
    return {name, reinterpret_cast<void *>(function)};
}

}  // namespace

std::span<const RuntimeSymbol> runtime_symbols() {
    static const std::array symbols = {
        symbol("tilewright_checked_index", checked_index),
        symbol("tilewright_checked_divisor", checked_divisor),
        symbol("tilewright_pow_int64", pow_int64),
        symbol("tilewright_digamma", digamma),
        symbol("tilewright_erfinv", erfinv),
        symbol("tilewright_lgamma", log_gamma),
        symbol("tilewright_sort", sort_rows),
    };
    return symbols;
}

}  // namespace tilewright
