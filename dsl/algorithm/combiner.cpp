#include "dsl/algorithm/combiner.h"

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using Halide::Type;

namespace {

Expr constant(Type type, double value) {
    return type.is_float() ? hi::make_const(type, value) : hi::make_const(type, static_cast<std::int64_t>(value));
}

Expr lowest(Type type) { return type.is_float() ? constant(type, -INFINITY) : type.min(); }

Expr highest(Type type) { return type.is_float() ? constant(type, INFINITY) : type.max(); }

std::vector<Expr> combine_arg(bool largest, const std::vector<Expr> &a, const std::vector<Expr> &b) {
    Expr better = largest ? math::gt(b[0], a[0]) : math::lt(b[0], a[0]);
    Expr tie = math::eq(b[0], a[0]);
    if (a[0].type().is_float()) {
        better = better || (math::isnan(b[0]) && !math::isnan(a[0]));
        tie = tie || (math::isnan(b[0]) && math::isnan(a[0]));
    }
    Expr take = better || (tie && b[1] < a[1]);
    return {hi::Select::make(take, b[0], a[0]), hi::Select::make(take, b[1], a[1])};
}

/// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979.
std::vector<Expr> combine_welford(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    Expr count = hi::Add::make(a[2], b[2]);
    Expr one = constant(count.type(), 1);
    Expr share = hi::Div::make(b[2], math::maximum(count, one));  // of two empty parts: 0
    Expr delta = hi::Sub::make(b[0], a[0]);
    Expr mean = hi::Add::make(a[0], hi::Mul::make(delta, share));
    Expr between = hi::Mul::make(hi::Mul::make(delta, delta), hi::Mul::make(a[2], share));
    return {mean, hi::Add::make(hi::Add::make(a[1], b[1]), between), count};
}

/// What is subtracted before exp: the maximum, or 0 where it is infinite (inf - inf would be NaN).
Expr finite_shift(const Expr &maximum) { return hi::Select::make(math::isinf(maximum), constant(maximum.type(), 0), maximum); }

std::vector<Expr> combine_log_sum_exp(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    Expr maximum = math::maximum(a[0], b[0]);
    Expr shift = finite_shift(maximum);
    Expr left = hi::Mul::make(a[1], math::exp(hi::Sub::make(a[0], shift)));
    Expr right = hi::Mul::make(b[1], math::exp(hi::Sub::make(b[0], shift)));
    return {maximum, hi::Add::make(left, right)};
}

}  // namespace

std::vector<Expr> combine(Combiner combiner, const std::vector<Expr> &a, const std::vector<Expr> &b) {
    internal_assert(a.size() == b.size(), "combine {}: {} accumulators, {} terms", name(combiner), a.size(), b.size());
    switch (combiner) {
        case Combiner::arg_minimum:
            return combine_arg(false, a, b);
        case Combiner::arg_maximum:
            return combine_arg(true, a, b);
        case Combiner::welford:
            return combine_welford(a, b);
        case Combiner::log_sum_exp:
            return combine_log_sum_exp(a, b);
        case Combiner::last:
            return b;
        case Combiner::general:
            internal_error("a general fold has no combiner");
        default:
            break;
    }
    std::vector<Expr> result;
    for (size_t i = 0; i < a.size(); i++) {
        switch (combiner) {
            case Combiner::sum:
                result.push_back(math::add(a[i], b[i]));
                break;
            case Combiner::product:
                result.push_back(math::mul(a[i], b[i]));
                break;
            case Combiner::minimum:
                result.push_back(math::minimum(a[i], b[i]));
                break;
            case Combiner::maximum:
                result.push_back(math::maximum(a[i], b[i]));
                break;
            case Combiner::logical_and:
                result.push_back(a[i] && b[i]);
                break;
            default:
                result.push_back(a[i] || b[i]);
                break;
        }
    }
    return result;
}

std::vector<Expr> identity(Combiner combiner, const std::vector<Type> &types) {
    std::vector<Expr> result;
    for (size_t i = 0; i < types.size(); i++) {
        Type type = types[i];
        switch (combiner) {
            case Combiner::product:
                result.push_back(constant(type, 1));
                break;
            case Combiner::minimum:
                result.push_back(highest(type));
                break;
            case Combiner::maximum:
                result.push_back(lowest(type));
                break;
            case Combiner::logical_and:
                result.push_back(hi::make_bool(true));
                break;
            case Combiner::logical_or:
                result.push_back(hi::make_bool(false));
                break;
            case Combiner::arg_minimum:
                result.push_back(highest(type));
                break;
            case Combiner::arg_maximum:
                result.push_back(i == 0 ? lowest(type) : highest(type));
                break;
            case Combiner::log_sum_exp:
                result.push_back(i == 0 ? lowest(type) : constant(type, 0));
                break;
            case Combiner::general:
                internal_error("a general fold has no identity");
            default:
                result.push_back(hi::make_zero(type));
                break;  // sum, welford, last
        }
    }
    return result;
}

namespace {

std::vector<Type> types_of(const std::vector<Expr> &values) {
    std::vector<Type> types;
    for (const Expr &value : values) {
        types.push_back(value.type());
    }
    return types;
}

void define(Halide::Func func, const std::vector<Halide::Var> &arguments, const std::vector<Expr> &values) {
    if (values.size() == 1) {
        func(arguments) = values[0];
    } else {
        func(arguments) = Halide::Tuple(values);
    }
}

/// With the domain given explicitly: a term that is constant along a reduction variable still counts once for each of its values.
void define_update(Halide::Func func, const std::vector<Expr> &arguments, const std::vector<Expr> &values, const Halide::RDom &domain) {
    func.function().define_update(arguments, values, domain.domain());
}

std::vector<Expr> self(const Halide::Func &func, const std::vector<Expr> &arguments, size_t outputs) {
    std::vector<Expr> result;
    for (size_t i = 0; i < outputs; i++) {
        result.push_back(hi::Call::make(func.function(), arguments, static_cast<int>(i)));
    }
    return result;
}

}  // namespace

void define_reduction(Halide::Func func, const std::vector<Halide::Var> &arguments, Combiner combiner, const std::vector<Expr> &terms,
                      const Halide::RDom &domain) {
    define(func, arguments, identity(combiner, types_of(terms)));
    std::vector<Expr> place(arguments.begin(), arguments.end());
    std::vector<Expr> values = combine(combiner, self(func, place, terms.size()), terms);
    define_update(func, place, values, domain);
}

void define_scan(Halide::Func func, const std::vector<Halide::Var> &arguments, int axis, Expr extent, Combiner combiner,
                 const std::vector<Expr> &terms) {
    std::vector<Expr> initial = identity(combiner, types_of(terms));
    define(func, arguments, initial);
    Halide::RDom domain = reduction_domain({extent});
    Expr step = domain[0];
    std::vector<Expr> place(arguments.begin(), arguments.end()), before = place;
    place[axis] = step;
    before[axis] = max(step - 1, 0);
    std::vector<Expr> accumulator = self(func, before, terms.size()), moved;
    for (size_t i = 0; i < terms.size(); i++) {
        accumulator[i] = hi::Select::make(step > 0, accumulator[i], initial[i]);
        moved.push_back(hi::graph_substitute(arguments[axis].name(), step, terms[i]));
    }
    define_update(func, place, combine(combiner, accumulator, moved), domain);
}

Expr finish_log_sum_exp(const Expr &maximum, const Expr &sum) { return hi::Add::make(math::log(sum), finite_shift(maximum)); }

}  // namespace tilewright
