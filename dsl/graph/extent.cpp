#include "dsl/graph/extent.h"

#include <algorithm>

#include "dsl/error.h"
#include "dsl/graph/extent_expression.h"

namespace tilewright {
namespace {

using Kind = Extent::Kind;

// Sizes of real models have a few terms. A product of long sums would grow without end, so it is refused.
constexpr std::size_t most_terms = 1024;
constexpr std::size_t most_factors = 64;

/// Merges two sorted lists of atoms.
Monomial merge(const Monomial &a, const Monomial &b) {
    Monomial result;
    result.reserve(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result), ExtentLess{});
    if (result.size() > most_factors) {
        user_error("a size is a product of more than {} factors; simplify the model's dynamic shapes", most_factors);
    }
    return result;
}

Extent term(const Monomial &atoms, std::int64_t coefficient) {
    if (atoms.empty()) {
        return coefficient;
    }
    if (coefficient == 1 && atoms.size() == 1) {
        return atoms[0];
    }
    std::vector<Extent> operands = atoms;
    if (coefficient != 1) {
        operands.emplace_back(coefficient);
    }
    return ExtentBuilder::make(Kind::product, std::move(operands));
}

}  // namespace

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) {
        user_error("the size {} + {} overflows 64 bits; narrow the range of the dynamic dimensions", a, b);
    }
    return result;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) {
        user_error("the size {} * {} overflows 64 bits; narrow the range of the dynamic dimensions", a, b);
    }
    return result;
}

std::int64_t checked_floor_div(std::int64_t a, std::int64_t b) {
    if (b == 0) {
        user_error("the size {} // 0 divides by zero", a);
    }
    if (b == -1) {
        return checked_multiply(a, -1);
    }
    const std::int64_t quotient = a / b;
    return quotient - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t checked_mod(std::int64_t a, std::int64_t b) {
    if (b == 0) {
        user_error("the size Mod({}, 0) divides by zero", a);
    }
    if (b == -1) {
        return 0;
    }
    const std::int64_t remainder = a % b;
    return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

// Atoms sort by kind, then by name or operands. Monomials sort by degree first, so that a sum prints its highest term first and its
// constant last.
std::strong_ordering compare(const Extent &a, const Extent &b) {
    if (ExtentBuilder::same(a, b)) {
        return std::strong_ordering::equal;
    }
    const auto &x = ExtentBuilder::look(a);
    const auto &y = ExtentBuilder::look(b);
    if (x.kind != y.kind) {
        // Constants come last.
        const auto rank = [](Kind kind) { return kind == Kind::constant ? 100 : static_cast<int>(kind); };
        return rank(x.kind) <=> rank(y.kind);
    }
    if (x.kind == Kind::constant) {
        return x.value <=> y.value;
    }
    if (x.kind == Kind::symbol) {
        // s2 before s10.
        if (x.name.size() != y.name.size()) {
            return x.name.size() <=> y.name.size();
        }
        return x.name.compare(y.name) <=> 0;
    }
    if (x.operands.size() != y.operands.size()) {
        return x.operands.size() <=> y.operands.size();
    }
    for (std::size_t i = 0; i < x.operands.size(); ++i) {
        if (const auto order = compare(x.operands[i], y.operands[i]); order != 0) {
            return order;
        }
    }
    return std::strong_ordering::equal;
}

bool ExtentLess::operator()(const std::vector<Extent> &a, const std::vector<Extent> &b) const {
    if (a.size() != b.size()) {
        return a.size() > b.size();
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (const auto order = compare(a[i], b[i]); order != 0) {
            return order < 0;
        }
    }
    return false;
}

Extent ExtentBuilder::make(Extent::Expression expression) {
    return Extent(std::make_shared<const Extent::Expression>(std::move(expression)));
}

Extent ExtentBuilder::make(Kind kind, std::vector<Extent> operands) { return make(Extent::Expression{kind, 0, {}, std::move(operands)}); }

void add_term(Polynomial &to, const Monomial &monomial, std::int64_t coefficient) {
    if (coefficient == 0) {
        return;
    }
    const auto [entry, added] = to.try_emplace(monomial, coefficient);
    if (!added) {
        entry->second = checked_add(entry->second, coefficient);
        if (entry->second == 0) {
            to.erase(entry);
        }
    }
    if (to.size() > most_terms) {
        user_error("a size is a sum of more than {} terms; simplify the model's dynamic shapes", most_terms);
    }
}

namespace {
void add_terms(Polynomial &to, const Extent &extent) {
    const auto &look = ExtentBuilder::look(extent);
    switch (look.kind) {
        case Kind::constant:
            add_term(to, {}, look.value);
            return;
        case Kind::sum:
            for (const Extent &operand : look.operands) {
                add_terms(to, operand);
            }
            return;
        case Kind::product: {
            Monomial atoms = look.operands;
            std::int64_t coefficient = 1;
            if (const auto last = atoms.back().constant()) {
                coefficient = *last;
                atoms.pop_back();
            }
            add_term(to, atoms, coefficient);
            return;
        }
        default:
            add_term(to, {extent}, 1);
    }
}
}  // namespace

Polynomial to_polynomial(const Extent &extent) {
    Polynomial result;
    add_terms(result, extent);
    return result;
}

Extent from_polynomial(const Polynomial &polynomial) {
    if (polynomial.empty()) {
        return 0;
    }
    if (polynomial.size() == 1) {
        return term(polynomial.begin()->first, polynomial.begin()->second);
    }
    std::vector<Extent> terms;
    terms.reserve(polynomial.size());
    for (const auto &[atoms, coefficient] : polynomial) {
        terms.push_back(term(atoms, coefficient));
    }
    return ExtentBuilder::make(Kind::sum, std::move(terms));
}

Polynomial multiply(const Polynomial &a, const Polynomial &b) {
    if (a.size() * b.size() > most_terms) {
        user_error("a size is a product of sums with {} and {} terms; simplify the model's dynamic shapes", a.size(), b.size());
    }
    Polynomial result;
    for (const auto &[x, p] : a) {
        for (const auto &[y, q] : b) {
            add_term(result, merge(x, y), checked_multiply(p, q));
        }
    }
    return result;
}

Extent::Extent(std::int64_t value) {
    // Nearly all extents are small constants: they share one expression each.
    static const auto small = [] {
        std::vector<std::shared_ptr<const Expression>> all;
        for (std::int64_t i = -1; i <= 1024; ++i) {
            all.push_back(std::make_shared<const Expression>(Expression{Kind::constant, i, {}, {}}));
        }
        return all;
    }();
    expression_ = value >= -1 && value <= 1024 ? small[static_cast<std::size_t>(value + 1)]
                                               : std::make_shared<const Expression>(Expression{Kind::constant, value, {}, {}});
}

Extent Extent::symbol(std::string name) {
    internal_assert(!name.empty(), "a symbol without a name");
    return ExtentBuilder::make(Expression{Kind::symbol, 0, std::move(name), {}});
}

bool Extent::is_constant() const { return expression_->kind == Kind::constant; }

std::optional<std::int64_t> Extent::constant() const { return is_constant() ? std::optional(expression_->value) : std::nullopt; }

std::int64_t Extent::value() const {
    internal_assert(is_constant(), "the value of the symbolic size {} was asked for", to_string());
    return expression_->value;
}

Extent::Kind Extent::kind() const { return expression_->kind; }

const std::string &Extent::symbol_name() const {
    internal_assert(kind() == Kind::symbol, "{} is no symbol", to_string());
    return expression_->name;
}

const std::vector<Extent> &Extent::operands() const { return expression_->operands; }

Extent operator+(const Extent &a, const Extent &b) {
    if (a.is_constant() && b.is_constant()) {
        return checked_add(a.value(), b.value());
    }
    Polynomial sum = to_polynomial(a);
    for (const auto &[monomial, coefficient] : to_polynomial(b)) {
        add_term(sum, monomial, coefficient);
    }
    return from_polynomial(sum);
}

Extent operator-(const Extent &a, const Extent &b) { return a + b * Extent(-1); }

Extent operator*(const Extent &a, const Extent &b) {
    if (a.is_constant() && b.is_constant()) {
        return checked_multiply(a.value(), b.value());
    }
    return from_polynomial(multiply(to_polynomial(a), to_polynomial(b)));
}

bool operator==(const Extent &a, const Extent &b) { return compare(a, b) == 0; }

Extent ceil_div(const Extent &a, const Extent &b) { return floor_div(a + b - 1, b); }

Extent product(const std::vector<Extent> &extents) {
    Extent result = 1;
    for (const Extent &extent : extents) {
        result = result * extent;
    }
    return result;
}

// As PyTorch has them: a dimension of size 0 counts as one.
std::vector<Extent> contiguous_strides(const std::vector<Extent> &sizes) {
    std::vector<Extent> strides(sizes.size());
    Extent stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        stride = stride * (sizes[i] == Extent(0) ? Extent(1) : sizes[i]);
    }
    return strides;
}

std::string to_string(const std::vector<Extent> &extents) {
    std::string text = "[";
    for (std::size_t i = 0; i < extents.size(); ++i) {
        text += (i > 0 ? ", " : "") + extents[i].to_string();
    }
    return text + "]";
}

}  // namespace tilewright
