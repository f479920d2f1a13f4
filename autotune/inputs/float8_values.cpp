#include "autotune/inputs/float8_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tilewright {

namespace {

using Magnitudes = std::array<double, 128>;

Magnitudes magnitudes(int mantissa_bits, int bias, int largest) {
    Magnitudes all{};
    for (int byte = 0; byte < 128; ++byte) {
        const int exponent = byte >> mantissa_bits, mantissa = byte & ((1 << mantissa_bits) - 1);
        const double significand = exponent ? (1 << mantissa_bits) + mantissa : mantissa;
        all[byte] = byte <= largest ? std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits)
                                    : std::numeric_limits<double>::quiet_NaN();
    }
    return all;
}

struct Format {
    Magnitudes magnitudes;
    int largest;  ///< byte of the largest number
};

const Format &format(DType type) {
    static const Format e4m3{magnitudes(3, 7, 0x7e), 0x7e};
    static const Format e5m2 = [] {
        Format f{magnitudes(2, 15, 0x7b), 0x7b};
        f.magnitudes[0x7c] = std::numeric_limits<double>::infinity();
        return f;
    }();
    return type == DType::float8_e4m3fn ? e4m3 : e5m2;
}

}  // namespace

double float8_to_double(DType type, std::uint8_t byte) {
    const double magnitude = format(type).magnitudes[byte & 0x7f];
    return byte & 0x80 ? -magnitude : magnitude;
}

std::uint8_t double_to_float8(DType type, double value) {
    if (std::isnan(value)) {
        return 0x7f;
    }
    const auto &[all, largest] = format(type);
    const double magnitude = std::abs(value);
    auto above = static_cast<int>(std::lower_bound(all.begin(), all.begin() + largest, magnitude) - all.begin());
    if (above > 0) {
        const double below = magnitude - all[above - 1], rest = all[above] - magnitude;
        above -= below < rest || (below == rest && above % 2 == 1) ? 1 : 0;
    }
    return static_cast<std::uint8_t>(above | (std::signbit(value) ? 0x80 : 0));
}

}  // namespace tilewright
