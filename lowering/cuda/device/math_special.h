// Functions without a hardware or library form.
#pragma once

#include "math_float.h"
#include "types.h"

namespace tw {

/// Logarithmic derivative of the gamma function: reflection below 0, recurrence up to 10, then the asymptotic series
/// (Abramowitz and Stegun 6.3.18). NaN at negative integers, -inf at 0.0 and inf at -0.0.
__device__ inline double digamma(double x) {
    constexpr double pi = 3.14159265358979323846;
    if (x == 0.0) {
        return copysign(infinity<double>(), neg(x));
    }
    double result = 0.0;
    if (x < 0.0) {
        if (x == trunc(x)) {
            return not_a_number<double>();
        }
        result = -pi / tan(pi * (x - trunc(x)));
        x = 1.0 - x;
    }
    while (x < 10.0) {
        result -= 1.0 / x;
        x += 1.0;
    }
    if (x == 10.0) {
        return result + 2.25175258906672110764;
    }
    if (x >= 1.0e17) {
        return result + log(x) - 0.5 / x;
    }
    const double square = 1.0 / (x * x);
    double series = 8.33333333333333333333e-2;  // Bernoulli numbers B(2k) / 2k
    series = series * square - 2.10927960927960927961e-2;
    series = series * square + 7.57575757575757575758e-3;
    series = series * square - 4.16666666666666666667e-3;
    series = series * square + 3.96825396825396825397e-3;
    series = series * square - 8.33333333333333333333e-3;
    series = series * square + 8.33333333333333333333e-2;
    return result + log(x) - 0.5 / x - series * square;
}
__device__ inline float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

}  // namespace tw
