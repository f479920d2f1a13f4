// Sizes, strides and offsets: 64-bit integer expressions over the symbols of a model's dynamic dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

using SymbolValues = std::map<std::string, std::int64_t>;

/// The values that a symbol may take, both ends included.
struct SymbolRange {
    std::int64_t min = 0;
    std::int64_t max = INT64_MAX;
    friend bool operator==(const SymbolRange &, const SymbolRange &) = default;
};
using SymbolRanges = std::map<std::string, SymbolRange>;

/// An immutable integer expression in a canonical form (a sum of products of atoms), so that equal expressions compare equal.
/// Arithmetic is exact; an overflow of 64 bits is a UserError that names the expression.
class Extent {
public:
    Extent() : Extent(0) {}
    Extent(std::int64_t value);  // NOLINT: integers convert
    Extent(int value) : Extent(static_cast<std::int64_t>(value)) {}
    static Extent symbol(std::string name);

    bool is_constant() const;
    std::optional<std::int64_t> constant() const;
    /// The value, or an InternalError where the expression has symbols.
    std::int64_t value() const;
    std::int64_t evaluate(const SymbolValues &symbols) const;
    /// The smallest and largest value inside the ranges (conservative).
    SymbolRange bounds(const SymbolRanges &ranges) const;
    void collect_symbols(std::set<std::string> &into) const;
    /// Replaces symbols by expressions.
    Extent substitute(const std::map<std::string, Extent> &values) const;

    std::string to_string() const;  ///< "s0*4 + 1", "(s0 + 3)//4", "Mod(s0, 2)", "Max(s0, 1)"
    /// Reads to_string()'s form and the sympy forms that torch.export writes. Throws UserError with the column.
    static Extent parse(std::string_view text);

    /// Structure for code generators: exactly one of the kinds below.
    enum class Kind { constant, symbol, sum, product, floor_div, mod, min, max };
    Kind kind() const;
    const std::string &symbol_name() const;       ///< of Kind::symbol
    const std::vector<Extent> &operands() const;  ///< of the other kinds; floor_div and mod have two

    friend Extent operator+(const Extent &a, const Extent &b);
    friend Extent operator-(const Extent &a, const Extent &b);
    friend Extent operator*(const Extent &a, const Extent &b);
    friend Extent floor_div(const Extent &a, const Extent &b);
    friend Extent mod(const Extent &a, const Extent &b);  ///< Python's: the sign of the divisor
    friend Extent min(const Extent &a, const Extent &b);
    friend Extent max(const Extent &a, const Extent &b);
    friend bool operator==(const Extent &a, const Extent &b);

    struct Expression;  ///< opaque; shared by copies

private:
    explicit Extent(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}
    std::shared_ptr<const Expression> expression_;
    friend struct ExtentBuilder;
};

Extent floor_div(const Extent &a, const Extent &b);
Extent mod(const Extent &a, const Extent &b);
Extent min(const Extent &a, const Extent &b);
Extent max(const Extent &a, const Extent &b);
Extent ceil_div(const Extent &a, const Extent &b);
Extent product(const std::vector<Extent> &extents);  ///< 1 for an empty list
std::vector<Extent> contiguous_strides(const std::vector<Extent> &sizes);
std::string to_string(const std::vector<Extent> &extents);  ///< "[2, s0, 3]"

}  // namespace tilewright
