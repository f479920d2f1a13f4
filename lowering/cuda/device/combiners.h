// The associative combiners of reductions and scans (dsl/algorithm/combiner.h) as functors over one value or a small struct.
#pragma once

#include "compare.h"
#include "math_float.h"
#include "math_integer.h"
#include "types.h"

namespace tw {

// `symmetric`: combine(a, b) and combine(b, a) have the same bits, so a butterfly leaves one value in every lane.
struct sum {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ T operator()(T a, T b) const { return add(a, b); }
};
struct product {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ T operator()(T a, T b) const { return mul(a, b); }
};
struct min_of {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ T operator()(T a, T b) const { return minimum(a, b); }
};
struct max_of {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ T operator()(T a, T b) const { return maximum(a, b); }
};
struct all_of {
    static constexpr bool symmetric = true;
    __device__ __forceinline__ bool operator()(bool a, bool b) const { return a && b; }
};
struct any_of {
    static constexpr bool symmetric = true;
    __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};

template<class T> struct value_and_index {
    T value;
    int64 index;
};
/// NaN wins, then the smaller or the larger value, then the smaller index.
template<bool Smaller> struct arg_extreme {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ value_and_index<T> operator()(value_and_index<T> a, value_and_index<T> b) const {
        const bool nan_a = isnan(a.value), nan_b = isnan(b.value);
        const bool wins = Smaller ? a.value < b.value : a.value > b.value;
        const bool first = nan_a || nan_b ? (nan_a && (!nan_b || a.index < b.index)) : (wins || (a.value == b.value && a.index < b.index));
        return first ? a : b;
    }
};
using arg_min = arg_extreme<true>;
using arg_max = arg_extreme<false>;

/// Mean and sum of squared deviations of `count` values.
template<class T> struct moments {
    T mean, m2, count;
};
/// Chan, Golub and LeVeque 1979.
struct welford {
    static constexpr bool symmetric = false;
    template<class T> __device__ __forceinline__ moments<T> operator()(moments<T> a, moments<T> b) const {
        if (b.count == T(0)) {
            return a;
        }
        if (a.count == T(0)) {
            return b;
        }
        const T count = a.count + b.count;
        const T share = b.count / count;
        const T delta = b.mean - a.mean;
        return {fma(delta, share, a.mean), fma(delta * delta, a.count * share, a.m2 + b.m2), count};
    }
};

/// sum(exp(x - maximum)) and the maximum, rescaled as larger values come.
template<class T> struct scaled_sum {
    T maximum, sum;
};
struct log_sum_exp {
    static constexpr bool symmetric = true;
    template<class T> __device__ __forceinline__ scaled_sum<T> operator()(scaled_sum<T> a, scaled_sum<T> b) const {
        const T top = tw::maximum(a.maximum, b.maximum);
        // Equal infinities have no difference: their factor is 1 (0 terms stay 0, inf stays NaN-free until the logarithm).
        const T scale_a = a.maximum == top ? T(1) : exp(a.maximum - top);
        const T scale_b = b.maximum == top ? T(1) : exp(b.maximum - top);
        return {top, a.sum * scale_a + b.sum * scale_b};
    }
};
/// Keeps the newer term.
struct last {
    static constexpr bool symmetric = false;
    template<class T> __device__ __forceinline__ T operator()(T, T b) const { return b; }
};

}  // namespace tw
