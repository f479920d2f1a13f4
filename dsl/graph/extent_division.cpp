// Division, remainder, minimum and maximum of extents, and the rules that keep them canonical.
#include <algorithm>
#include <numeric>

#include "dsl/error.h"
#include "dsl/graph/extent_expression.h"

namespace tilewright {
namespace {

using Kind = Extent::Kind;

/// The atoms of `a` without those of `b`, or nothing where `b` is no part of it.
std::optional<Monomial> divide(const Monomial &a, const Monomial &b) {
    Monomial rest;
    std::size_t matched = 0;
    for (const Extent &atom : a) {
        if (matched < b.size() && atom == b[matched]) {
            ++matched;
        } else {
            rest.push_back(atom);
        }
    }
    return matched == b.size() ? std::optional(rest) : std::nullopt;
}

struct Division {
    Polynomial quotient, remainder;
};

/// a = quotient * b + remainder, by the leading term of b, as far as terms divide.
Division long_division(Polynomial a, const Polynomial &b) {
    Division result;
    const auto &[lead, lead_coefficient] = *b.begin();
    while (!a.empty()) {
        const auto [monomial, coefficient] = *a.begin();
        const auto rest = divide(monomial, lead);
        // Over a constant divisor the remainder's coefficients end in [0, divisor), which makes it canonical.
        const bool by_constant = b.size() == 1 && lead.empty();
        const std::int64_t times = !rest                                                ? 0
                                   : by_constant || coefficient % lead_coefficient == 0 ? checked_floor_div(coefficient, lead_coefficient)
                                                                                        : 0;
        if (times != 0) {
            add_term(result.quotient, *rest, times);
            for (const auto &[other, other_coefficient] : b) {
                Monomial shifted = other;
                shifted.insert(shifted.end(), rest->begin(), rest->end());
                std::sort(shifted.begin(), shifted.end(), ExtentLess{});
                add_term(a, shifted, checked_multiply(checked_multiply(other_coefficient, times), -1));
            }
        }
        if (const auto left = a.find(monomial); left != a.end()) {
            add_term(result.remainder, monomial, left->second);
            a.erase(left);
        }
    }
    return result;
}

/// What divides every term: the greatest common factor of the coefficients and the atoms that all share.
struct Content {
    std::int64_t factor = 0;
    Monomial atoms;
    bool first = true;

    void include(const Polynomial &polynomial) {
        for (const auto &[monomial, coefficient] : polynomial) {
            factor = std::gcd(factor, coefficient);
            if (first) {
                atoms = monomial;
                first = false;
                continue;
            }
            Monomial shared;
            std::set_intersection(atoms.begin(), atoms.end(), monomial.begin(), monomial.end(), std::back_inserter(shared), ExtentLess{});
            atoms = shared;
        }
    }
    Polynomial remove_from(const Polynomial &polynomial) const {
        Polynomial result;
        for (const auto &[monomial, coefficient] : polynomial) {
            add_term(result, *divide(monomial, atoms), coefficient / factor);
        }
        return result;
    }
};

/// Takes the constant term away, so that what is common to the others can be seen.
std::int64_t take_constant(Polynomial &polynomial) {
    const auto entry = polynomial.find({});
    if (entry == polynomial.end()) {
        return 0;
    }
    const std::int64_t value = entry->second;
    polynomial.erase(entry);
    return value;
}

Extent divide_by_constant(const Polynomial &numerator, std::int64_t divisor) {
    if (divisor < 0) {
        Polynomial negated;
        for (const auto &[monomial, coefficient] : numerator) {
            add_term(negated, monomial, checked_multiply(coefficient, -1));
        }
        return divide_by_constant(negated, checked_multiply(divisor, -1));
    }
    auto [quotient, rest] = long_division(numerator, {{Monomial{}, divisor}});
    const Extent whole = from_polynomial(quotient);
    std::int64_t constant = take_constant(rest);
    if (rest.empty()) {
        return whole;  // 0 <= constant < divisor
    }
    // (g*x + k) // (g*d) = (x + k//g) // d
    Content content;
    content.include(rest);
    const std::int64_t common = std::gcd(content.factor, divisor);
    Polynomial reduced;
    for (const auto &[monomial, coefficient] : rest) {
        add_term(reduced, monomial, coefficient / common);
    }
    constant = checked_floor_div(constant, common);
    divisor /= common;
    // (x//a + k) // b = (x + k*a) // (a*b)
    if (reduced.size() == 1 && reduced.begin()->second == 1 && reduced.begin()->first.size() == 1) {
        const Extent &atom = reduced.begin()->first[0];
        if (atom.kind() == Kind::floor_div) {
            const auto inner = atom.operands()[1].constant();
            std::int64_t combined = 0;
            if (inner && *inner > 0 && !__builtin_mul_overflow(*inner, divisor, &combined)) {
                return whole + floor_div(atom.operands()[0] + Extent(checked_multiply(constant, *inner)), combined);
            }
        }
    }
    if (divisor == 1) {
        return whole + from_polynomial(reduced) + Extent(constant);
    }
    add_term(reduced, {}, constant);
    return whole + ExtentBuilder::make(Kind::floor_div, {from_polynomial(reduced), divisor});
}

Extent minimum_or_maximum(Kind kind, const Extent &a, const Extent &b) {
    std::vector<Extent> operands;
    for (const Extent *side : {&a, &b}) {
        if (side->kind() == kind) {
            operands.insert(operands.end(), side->operands().begin(), side->operands().end());
        } else {
            operands.push_back(*side);
        }
    }
    // Of two operands that differ by a constant, one always wins.
    std::vector<Extent> kept;
    for (const Extent &operand : operands) {
        bool absorbed = false;
        for (Extent &other : kept) {
            if (const auto difference = (operand - other).constant()) {
                if (kind == Kind::min ? *difference < 0 : *difference > 0) {
                    other = operand;
                }
                absorbed = true;
                break;
            }
        }
        if (!absorbed) {
            kept.push_back(operand);
        }
    }
    if (kept.size() == 1) {
        return kept[0];
    }
    std::sort(kept.begin(), kept.end(), ExtentLess{});
    return ExtentBuilder::make(kind, std::move(kept));
}

}  // namespace

Extent floor_div(const Extent &a, const Extent &b) {
    const auto divisor = b.constant();
    if (divisor && *divisor == 0) {
        user_error("the size ({}) // 0 divides by zero", a.to_string());
    }
    if (divisor && a.is_constant()) {
        return checked_floor_div(a.value(), *divisor);
    }
    const Polynomial numerator = to_polynomial(a);
    if (divisor) {
        return divide_by_constant(numerator, *divisor);
    }
    const Polynomial denominator = to_polynomial(b);
    const auto [quotient, rest] = long_division(numerator, denominator);
    // Floor distributes over a whole quotient: (q*b + r) // b = q + r//b.
    const Extent whole = from_polynomial(quotient);
    if (rest.empty()) {
        return whole;
    }
    Content content;
    content.include(rest);
    content.include(denominator);
    const Extent top = from_polynomial(content.remove_from(rest));
    const Extent bottom = from_polynomial(content.remove_from(denominator));
    if (bottom.is_constant()) {
        return whole + floor_div(top, bottom);
    }
    return whole + ExtentBuilder::make(Kind::floor_div, {top, bottom});
}

Extent mod(const Extent &a, const Extent &b) {
    const auto divisor = b.constant();
    if (divisor && *divisor == 0) {
        user_error("the size Mod({}, 0) divides by zero", a.to_string());
    }
    if (divisor && a.is_constant()) {
        return checked_mod(a.value(), *divisor);
    }
    Polynomial denominator = to_polynomial(b);
    Polynomial rest = long_division(to_polynomial(a), denominator).remainder;
    if (rest.empty()) {
        return 0;
    }
    if (divisor && rest.size() == 1 && rest.begin()->first.empty()) {
        return checked_mod(rest.begin()->second, *divisor);
    }
    if (divisor && *divisor > 0) {
        // A term c*Mod(x, d) may drop its Mod where the divisor divides c*d.
        Extent opened = 0;
        bool changed = false;
        for (const auto &[monomial, coefficient] : rest) {
            Extent value = from_polynomial({{monomial, coefficient}});
            if (monomial.size() == 1 && monomial[0].kind() == Kind::mod) {
                const auto inner = monomial[0].operands()[1].constant();
                std::int64_t scaled = 0;
                if (inner && !__builtin_mul_overflow(*inner, coefficient, &scaled) && scaled % *divisor == 0) {
                    value = monomial[0].operands()[0] * Extent(coefficient);
                    changed = true;
                }
            }
            opened = opened + value;
        }
        if (changed) {
            return mod(opened, b);
        }
        Content content;
        content.include(rest);
        const std::int64_t common = std::gcd(content.factor, *divisor);
        if (common > 1) {
            Polynomial reduced;
            for (const auto &[monomial, coefficient] : rest) {
                add_term(reduced, monomial, coefficient / common);
            }
            return Extent(common) * mod(from_polynomial(reduced), *divisor / common);
        }
    }
    return ExtentBuilder::make(Kind::mod, {from_polynomial(rest), b});
}

Extent min(const Extent &a, const Extent &b) {
    if (a.is_constant() && b.is_constant()) {
        return std::min(a.value(), b.value());
    }
    return minimum_or_maximum(Kind::min, a, b);
}

Extent max(const Extent &a, const Extent &b) {
    if (a.is_constant() && b.is_constant()) {
        return std::max(a.value(), b.value());
    }
    return minimum_or_maximum(Kind::max, a, b);
}

}  // namespace tilewright
