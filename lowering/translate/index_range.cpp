#include "lowering/translate/index_range.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/math.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// 32 bits hold every value between, whatever the symbols are.
bool fits(const Extent &low, const Extent &high, const SymbolRanges &symbols) {
    return provably_at_most(INT32_MIN, low, symbols) && provably_at_most(high, INT32_MAX, symbols);
}

class Reader {
public:
    Reader(const std::vector<Extent> &extents, const SymbolRanges &symbols) : extents(extents), symbols(symbols) {}

    std::optional<RangedIndex> read(const Expr &e) const {
        if (auto value = hi::as_const_int(e)) {
            return checked({Expr(), *value, *value}, [&] { return Expr(static_cast<int>(*value)); });
        }
        if (const auto *variable = e.as<hi::Variable>()) {
            return read_variable(e, *variable);
        }
        if (const auto *op = e.as<hi::Add>()) {
            return sum(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Sub>()) {
            return difference(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Mul>()) {
            return product(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Min>()) {
            return extreme(op->a, op->b, false);
        }
        if (const auto *op = e.as<hi::Max>()) {
            return extreme(op->a, op->b, true);
        }
        if (const auto *op = e.as<hi::Div>()) {
            return quotient(op->a, op->b);
        }
        const auto *call = e.as<hi::Call>();
        return call ? read_call(e, *call) : std::nullopt;
    }

private:
    using Ranged = std::optional<RangedIndex>;

    template <typename Build>
    Ranged checked(RangedIndex range, Build build) const {
        if (!fits(range.low, range.high, symbols)) {
            return std::nullopt;
        }
        range.index = build();
        return range;
    }

    Ranged read_variable(const Expr &e, const hi::Variable &variable) const {
        if (e.type() != Halide::Int(32)) {
            return std::nullopt;
        }
        if (auto extent = from_halide(e)) {  // a symbol
            return RangedIndex{e, *extent, *extent};
        }
        for (std::size_t i = 0; i < extents.size(); i++) {
            if (variable.name == "d" + std::to_string(i)) {
                return RangedIndex{e, 0, extents[i] - 1};
            }
        }
        return std::nullopt;
    }

    Ranged read_call(const Expr &e, const hi::Call &call) const {
        std::string_view name = math::primitive_name(&call);
        const std::vector<Expr> &a = call.args;
        bool wide = e.type().is_int() && e.type().bits() >= 32;
        if (!wide) {
            return std::nullopt;
        }
        if (name == "convert" || name == "explicit_cast") {
            bool from_wide = a[0].type().is_int() && a[0].type().bits() >= 32;
            return from_wide ? read(a[0]) : std::nullopt;
        }
        if (name == "add") {
            return sum(a[0], a[1]);
        }
        if (name == "sub") {
            return difference(a[0], a[1]);
        }
        if (name == "mul") {
            return product(a[0], a[1]);
        }
        if (name == "neg") {
            return difference(Expr(0), a[0]);
        }
        if (name == "div_floor") {
            return quotient(a[0], a[1]);
        }
        return name == "abs" ? absolute(a[0]) : std::nullopt;
    }

    Ranged sum(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        return x && y ? checked({Expr(), x->low + y->low, x->high + y->high}, [&] { return x->index + y->index; }) : std::nullopt;
    }

    Ranged difference(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        return x && y ? checked({Expr(), x->low - y->high, x->high - y->low}, [&] { return x->index - y->index; }) : std::nullopt;
    }

    Ranged product(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        if (x && y && x->low.is_constant() && x->low == x->high) {
            std::swap(x, y);
        }
        if (!x || !y || !y->low.is_constant() || y->low != y->high) {
            return std::nullopt;
        }
        Extent low = x->low * y->low, high = x->high * y->low;
        if (y->low.value() < 0) {
            std::swap(low, high);
        }
        return checked({Expr(), low, high}, [&] { return x->index * y->index; });
    }

    Ranged quotient(const Expr &a, const Expr &b) const {
        auto x = read(a), y = read(b);
        if (!x || !y || !y->low.is_constant() || y->low != y->high || y->low.value() <= 0) {
            return std::nullopt;
        }
        return checked({Expr(), floor_div(x->low, y->low), floor_div(x->high, y->low)}, [&] { return x->index / y->index; });
    }

    Ranged extreme(const Expr &a, const Expr &b, bool largest) const {
        auto x = read(a), y = read(b);
        if (!x || !y) {
            return std::nullopt;
        }
        return largest ? checked({Expr(), max(x->low, y->low), max(x->high, y->high)}, [&] { return Halide::max(x->index, y->index); })
                       : checked({Expr(), min(x->low, y->low), min(x->high, y->high)}, [&] { return Halide::min(x->index, y->index); });
    }

    Ranged absolute(const Expr &a) const {
        auto x = read(a);
        if (!x) {
            return std::nullopt;
        }
        Extent high = max(x->high, Extent(0) - x->low);
        return checked({Expr(), 0, high}, [&] { return Halide::max(x->index, 0 - x->index); });
    }

    const std::vector<Extent> &extents;
    const SymbolRanges &symbols;
};

}  // namespace

bool provably_at_most(const Extent &a, const Extent &b, const SymbolRanges &symbols) {
    return (b - a).bounds(symbols).min >= 0;
}

std::optional<RangedIndex> ranged_index(const Expr &expression, const std::vector<Extent> &extents, const SymbolRanges &symbols) {
    return Reader(extents, symbols).read(expression);
}

}  // namespace tilewright::translation
