// The polynomial form behind Extent: what its arithmetic, its simplifications and its evaluation share.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "dsl/graph/extent.h"

namespace tilewright {

struct Extent::Expression {
    Kind kind = Kind::constant;
    std::int64_t value = 0;        ///< of a constant
    std::string name;              ///< of a symbol
    std::vector<Extent> operands;  ///< of the others
};

/// A total order of expressions, by structure: terms of a higher degree come first, constants last.
std::strong_ordering compare(const Extent &a, const Extent &b);

struct ExtentLess {
    bool operator()(const Extent &a, const Extent &b) const { return compare(a, b) < 0; }
    bool operator()(const std::vector<Extent> &a, const std::vector<Extent> &b) const;
};

/// A product of atoms (anything but constants, sums and products), sorted, with repeats for powers. Empty: the constant 1.
using Monomial = std::vector<Extent>;
/// Monomials with their coefficients, none of which is 0.
using Polynomial = std::map<Monomial, std::int64_t, ExtentLess>;

struct ExtentBuilder {
    static Extent make(Extent::Expression expression);
    static Extent make(Extent::Kind kind, std::vector<Extent> operands);
    static const Extent::Expression &look(const Extent &extent) { return *extent.expression_; }
    static bool same(const Extent &a, const Extent &b) { return a.expression_ == b.expression_; }
};

Polynomial to_polynomial(const Extent &extent);
Extent from_polynomial(const Polynomial &polynomial);
void add_term(Polynomial &to, const Monomial &monomial, std::int64_t coefficient);
Polynomial multiply(const Polynomial &a, const Polynomial &b);

/// Arithmetic on 64 bits; an overflow is a UserError.
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
std::int64_t checked_floor_div(std::int64_t a, std::int64_t b);
std::int64_t checked_mod(std::int64_t a, std::int64_t b);

}  // namespace tilewright
