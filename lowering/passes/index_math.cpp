#include "lowering/passes/index_math.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "dsl/algorithm/simplify.h"

namespace tilewright {
namespace {

using namespace Halide::Internal;
namespace hi = Halide::Internal;
using Halide::Expr;

class Substitute : public IRGraphMutator {
public:
    explicit Substitute(const Substitution &values) : values_(values) {}

private:
    const Substitution &values_;
    using IRGraphMutator::visit;
    Expr visit(const Variable *op) override {
        auto found = values_.find(op->name);
        return found == values_.end() ? Expr(op) : found->second;
    }
};

Scope<Interval> to_scope(const VariableRanges &ranges) {
    Scope<Interval> scope;
    for (const auto &[name, range] : ranges) {
        Interval interval = Interval::everything();
        if (range.min > std::numeric_limits<int>::min()) {
            interval.min = static_cast<int>(std::min<std::int64_t>(range.min, std::numeric_limits<int>::max()));
        }
        if (range.max < std::numeric_limits<int>::max()) {
            interval.max = static_cast<int>(range.max);
        }
        scope.push(name, interval);
    }
    return scope;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    std::int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

bool overflows(const SymbolRange &r) { return r.min < -(1LL << 62) || r.max > (1LL << 62); }

}  // namespace

Expr substitute_variables(const Expr &e, const Substitution &values) { return e.defined() ? Substitute(values).mutate(e) : e; }

Expr simplify_index(const Expr &e, const VariableRanges &ranges) {
    if (e.as<Variable>() || is_const(e)) {
        return e;
    }
    return simplify_integers(e, to_scope(ranges));
}

namespace {

/// Sums of multiples of atoms: Halide's simplifier factors common divisors out of some sums and then misses that two are equal.
using LinearForm = std::map<Expr, std::int64_t, IRGraphDeepCompare>;

void add_linear(const Expr &e, std::int64_t scale, LinearForm &into) {
    if (const auto *op = e.as<Add>()) {
        add_linear(op->a, scale, into);
        add_linear(op->b, scale, into);
    } else if (const auto *op = e.as<Sub>()) {
        add_linear(op->a, scale, into);
        add_linear(op->b, -scale, into);
    } else if (const auto *op = e.as<Mul>(); op && (op->a.as<IntImm>() || op->b.as<IntImm>())) {
        const bool left = op->a.as<IntImm>() != nullptr;
        add_linear(left ? op->b : op->a, scale * (left ? op->a : op->b).as<IntImm>()->value, into);
    } else if (const auto *op = e.as<IntImm>()) {
        into[Expr(1)] += scale * op->value;
    } else {
        into[e] += scale;
    }
}

Expr sum_of(const LinearForm &form) {
    Expr sum = 0;
    for (const auto &[atom, scale] : form) {
        if (scale != 0) {
            sum = sum + (scale == 1 ? atom : atom * static_cast<int>(scale));
        }
    }
    return sum;
}

bool is_zero(const LinearForm &form) {
    return std::all_of(form.begin(), form.end(), [](const auto &term) { return term.second == 0; });
}

}  // namespace

bool equal_indices(const Expr &a, const Expr &b, const VariableRanges &ranges) {
    if (a.same_as(b) || graph_equal(a, b)) {
        return true;
    }
    if (a.type() != b.type() || a.type() != Halide::Int(32)) {
        return false;
    }
    LinearForm form;
    add_linear(simplify_index(a, ranges), 1, form);
    add_linear(simplify_index(b, ranges), -1, form);
    return is_zero(form) || is_const_zero(simplify_index(a - b, ranges));
}

Expr difference_of(const Expr &a, const Expr &b, const VariableRanges &ranges) {
    LinearForm form;
    add_linear(simplify_index(a, ranges), 1, form);
    add_linear(simplify_index(b, ranges), -1, form);
    return simplify_index(sum_of(form), ranges);
}

namespace {

/// A term x / by of a sum, taken modulo `modulus` where that is not 0.
struct Digit {
    Expr of;
    std::int64_t by = 1, modulus = 0;
};

Digit digit_of(const Expr &term) {
    const auto *mod = term.as<Mod>();
    const auto *modulus = mod ? mod->b.as<IntImm>() : nullptr;
    const Expr inside = modulus ? mod->a : term;
    const auto *div = inside.as<Div>();
    const auto *by = div ? div->b.as<IntImm>() : nullptr;
    return {by ? div->a : inside, by ? by->value : 1, modulus ? modulus->value : 0};
}

/// Joins two neighbouring digits of one place: scale * (x / by % modulus) + scale * modulus * (x / (by * modulus)).
bool join_two(LinearForm &form) {
    for (const auto &[low_term, low_scale] : form) {
        const Digit low = digit_of(low_term);
        if (low.modulus <= 0 || low.by <= 0 || low_scale == 0) {
            continue;
        }
        for (const auto &[high_term, high_scale] : form) {
            const Digit high = digit_of(high_term);
            if (high_scale != low_scale * low.modulus || high.by != low.by * low.modulus || !graph_equal(high.of, low.of)) {
                continue;
            }
            const Expr shifted = low.by == 1 ? low.of : Div::make(low.of, Expr(static_cast<int>(low.by)));
            const Expr joined = high.modulus > 0 ? Mod::make(shifted, Expr(static_cast<int>(low.modulus * high.modulus))) : shifted;
            const std::int64_t scale = low_scale;
            const Expr first = low_term, second = high_term;
            form.erase(first);
            form.erase(second);
            add_linear(joined, scale, form);
            return true;
        }
    }
    return false;
}

std::optional<SymbolRange> checked(const SymbolRange &range) { return overflows(range) ? std::nullopt : std::optional(range); }

/// The values of `a op b` for an arithmetic operator, where both ranges are known.
std::optional<SymbolRange> range_of_operation(IRNodeType kind, const SymbolRange &a, const SymbolRange &b) {
    switch (kind) {
        case IRNodeType::Add:
            return checked({a.min + b.min, a.max + b.max});
        case IRNodeType::Sub:
            return checked({a.min - b.max, a.max - b.min});
        case IRNodeType::Min:
            return SymbolRange{std::min(a.min, b.min), std::min(a.max, b.max)};
        case IRNodeType::Max:
            return SymbolRange{std::max(a.min, b.min), std::max(a.max, b.max)};
        case IRNodeType::Mul: {
            __int128 values[4] = {static_cast<__int128>(a.min) * b.min, static_cast<__int128>(a.min) * b.max,
                                  static_cast<__int128>(a.max) * b.min, static_cast<__int128>(a.max) * b.max};
            __int128 low = *std::min_element(values, values + 4), high = *std::max_element(values, values + 4);
            if (low < -(static_cast<__int128>(1) << 62) || high > (static_cast<__int128>(1) << 62)) {
                return std::nullopt;
            }
            return SymbolRange{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
        }
        case IRNodeType::Div: {
            if (b.min <= 0) {
                return std::nullopt;
            }
            std::int64_t values[4] = {floor_quotient(a.min, b.min), floor_quotient(a.min, b.max), floor_quotient(a.max, b.min),
                                      floor_quotient(a.max, b.max)};
            return SymbolRange{*std::min_element(values, values + 4), *std::max_element(values, values + 4)};
        }
        default:
            return std::nullopt;
    }
}

}  // namespace

Expr join_remainders(const Expr &e, const VariableRanges &ranges) {
    if (e.type() != Halide::Int(32)) {
        return e;
    }
    LinearForm form;
    add_linear(e, 1, form);
    bool joined = false;
    while (join_two(form)) {
        joined = true;
    }
    if (!joined) {
        return e;
    }
    return simplify_index(sum_of(form), ranges);
}

std::optional<SymbolRange> range_of(const Expr &e, const VariableRanges &ranges) {
    using Result = std::optional<SymbolRange>;
    if (const auto *op = e.as<IntImm>()) {
        return SymbolRange{op->value, op->value};
    }
    if (const auto *op = e.as<UIntImm>()) {
        return SymbolRange{static_cast<std::int64_t>(op->value), static_cast<std::int64_t>(op->value)};
    }
    if (const auto *op = e.as<Variable>()) {
        auto found = ranges.find(op->name);
        return found == ranges.end() ? Result() : checked(found->second);
    }
    if (const auto *op = e.as<Cast>()) {
        return op->type.is_int_or_uint() && op->value.type().is_int_or_uint() && op->type.bits() >= 32 ? range_of(op->value, ranges)
                                                                                                       : Result();
    }
    if (const auto *op = e.as<Select>()) {
        Result a = range_of(op->true_value, ranges), b = range_of(op->false_value, ranges);
        return a && b ? Result({std::min(a->min, b->min), std::max(a->max, b->max)}) : Result();
    }
    if (const auto *op = e.as<Call>()) {
        if (op->name == "tw.checked_index" && op->args.size() >= 2) {  // [0, size)
            Result size = range_of(op->args[1], ranges);
            return size ? Result({0, std::max<std::int64_t>(size->max - 1, 0)}) : Result();
        }
        return op->is_intrinsic(Call::likely) ? range_of(op->args[0], ranges) : Result();
    }
    Expr left, right;
    IRNodeType kind = e.node_type();
    auto take = [&](const auto *op) {
        if (op) {
            left = op->a;
            right = op->b;
        }
    };
    take(e.as<Add>()), take(e.as<Sub>()), take(e.as<Mul>()), take(e.as<Div>()), take(e.as<Mod>()), take(e.as<Min>()), take(e.as<Max>());
    if (!left.defined() || !e.type().is_int_or_uint()) {
        return std::nullopt;
    }
    Result a = range_of(left, ranges), b = range_of(right, ranges);
    if (kind == IRNodeType::Mod && b && b->min == b->max && b->min > 0) {
        bool whole = !a || a->min < 0 || a->max >= b->min;
        return whole ? SymbolRange{0, b->min - 1} : *a;
    }
    if (kind == IRNodeType::Mod && b && b->min > 0) {
        return SymbolRange{0, b->max - 1};
    }
    if (!a || !b) {
        return std::nullopt;
    }
    return range_of_operation(kind, *a, *b);
}

std::string as_variable(const Expr &e) {
    const auto *op = e.as<Variable>();
    return op ? op->name : "";
}

bool steps_by_one(const Expr &e, const std::string &variable, std::int64_t extent, const VariableRanges &ranges) {
    VariableRanges with = ranges;
    with[variable] = {0, extent - 1};
    const Expr simple = simplify_index(e, with), first = substitute_variables(simple, {{variable, Expr(0)}});
    const auto differ_by_variable = [&](const Expr &at_zero) {
        LinearForm form;
        add_linear(simple, 1, form);
        add_linear(at_zero, -1, form);
        form[Variable::make(Halide::Int(32), variable)] -= 1;
        return is_zero(form);
    };
    // The simplifier may write the first element in another way than the others.
    return differ_by_variable(first) || differ_by_variable(simplify_index(first, with));
}

std::int64_t divisor_of(const Expr &e, const std::map<std::string, std::int64_t> &multiples) {
    if (const auto *op = e.as<IntImm>()) {
        return std::abs(op->value);
    }
    if (const auto *op = e.as<Variable>()) {
        auto found = multiples.find(op->name);
        return found == multiples.end() ? 1 : found->second;
    }
    if (const auto *op = e.as<Add>()) {
        return std::gcd(divisor_of(op->a, multiples), divisor_of(op->b, multiples));
    }
    if (const auto *op = e.as<Sub>()) {
        return std::gcd(divisor_of(op->a, multiples), divisor_of(op->b, multiples));
    }
    if (const auto *op = e.as<Mul>()) {
        __int128 d = static_cast<__int128>(divisor_of(op->a, multiples)) * divisor_of(op->b, multiples);
        return d > (1LL << 40) ? (1LL << 40) : static_cast<std::int64_t>(d);
    }
    if (const auto *op = e.as<Mod>()) {
        return std::gcd(divisor_of(op->a, multiples), divisor_of(op->b, multiples));
    }
    if (const auto *op = e.as<Cast>()) {
        return op->type.is_int_or_uint() ? divisor_of(op->value, multiples) : 1;
    }
    if (const auto *op = e.as<Div>()) {
        const auto *by = op->b.as<IntImm>();
        std::int64_t d = divisor_of(op->a, multiples);
        return by && by->value > 0 && d % by->value == 0 ? d / by->value : 1;
    }
    return 1;
}

bool is_multiple_of(const Expr &e, std::int64_t unit, const std::map<std::string, std::int64_t> &multiples) {
    LinearForm form, reduced;
    add_linear(e, 1, form);
    for (const auto &[atom, scale] : form) {  // x % c is x as far as multiples of a divisor of c go
        const auto *op = atom.as<Mod>();
        const auto *by = op ? op->b.as<IntImm>() : nullptr;
        if (by && by->value > 0 && by->value % unit == 0) {
            add_linear(op->a, scale, reduced);
        } else {
            reduced[atom] += scale;
        }
    }
    return std::all_of(reduced.begin(), reduced.end(),
                       [&](const auto &term) { return (term.second % unit) * (divisor_of(term.first, multiples) % unit) % unit == 0; });
}

Expr canonical_indices(const Expr &e, const VariableRanges &ranges) {
    class Canonical : public hi::IRGraphMutator {
    public:
        explicit Canonical(const VariableRanges &ranges) : ranges_(ranges) {}
        using hi::IRGraphMutator::mutate;
        Expr mutate(const Expr &e) override {
            return e.defined() && e.type() == Halide::Int(32) ? difference_of(e, Expr(0), ranges_) : hi::IRGraphMutator::mutate(e);
        }

    private:
        const VariableRanges &ranges_;
    };
    return Canonical(ranges).mutate(e);
}

}  // namespace tilewright
