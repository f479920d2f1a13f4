#include "lowering/fusion/index_map.h"

#include <algorithm>
#include <random>

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Evaluates integer expressions; each shared node once.
class IndexEvaluator {
public:
    explicit IndexEvaluator(const IndexPoint &point) : point_(point) {}

    std::optional<std::int64_t> of(const Expr &e) {
        const auto found = memo_.find(e.get());
        if (found != memo_.end()) {
            return found->second;
        }
        const auto value = node(e);
        memo_.emplace(e.get(), value);
        return value;
    }

private:
    using Value = std::optional<std::int64_t>;

    static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::div_imp(a, b); }
    static std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::mod_imp(a, b); }

    template<typename Node, typename Function>
    Value binary(const Expr &e, Function function) {
        const auto *op = e.as<Node>();
        const Value a = of(op->a);
        const Value b = of(op->b);
        return a && b ? Value(function(*a, *b)) : std::nullopt;
    }

    Value node(const Expr &e) {
        using hi::IRNodeType;
        switch (e->node_type) {
            case IRNodeType::IntImm: return e.as<hi::IntImm>()->value;
            case IRNodeType::UIntImm: return static_cast<std::int64_t>(e.as<hi::UIntImm>()->value);
            case IRNodeType::Variable: {
                const auto found = point_.find(e.as<hi::Variable>()->name);
                return found == point_.end() ? std::nullopt : Value(found->second);
            }
            case IRNodeType::Cast: return e.type().is_int_or_uint() && e.type().bits() >= 32 ? of(e.as<hi::Cast>()->value) : std::nullopt;
            case IRNodeType::Add: return binary<hi::Add>(e, [](auto a, auto b) { return a + b; });
            case IRNodeType::Sub: return binary<hi::Sub>(e, [](auto a, auto b) { return a - b; });
            case IRNodeType::Mul: return binary<hi::Mul>(e, [](auto a, auto b) { return a * b; });
            case IRNodeType::Div: return binary<hi::Div>(e, floor_div);
            case IRNodeType::Mod: return binary<hi::Mod>(e, floor_mod);
            case IRNodeType::Min: return binary<hi::Min>(e, [](auto a, auto b) { return std::min(a, b); });
            case IRNodeType::Max: return binary<hi::Max>(e, [](auto a, auto b) { return std::max(a, b); });
            case IRNodeType::EQ: return binary<hi::EQ>(e, [](auto a, auto b) { return std::int64_t(a == b); });
            case IRNodeType::NE: return binary<hi::NE>(e, [](auto a, auto b) { return std::int64_t(a != b); });
            case IRNodeType::LT: return binary<hi::LT>(e, [](auto a, auto b) { return std::int64_t(a < b); });
            case IRNodeType::LE: return binary<hi::LE>(e, [](auto a, auto b) { return std::int64_t(a <= b); });
            case IRNodeType::GT: return binary<hi::GT>(e, [](auto a, auto b) { return std::int64_t(a > b); });
            case IRNodeType::GE: return binary<hi::GE>(e, [](auto a, auto b) { return std::int64_t(a >= b); });
            case IRNodeType::And: return binary<hi::And>(e, [](auto a, auto b) { return std::int64_t(a && b); });
            case IRNodeType::Or: return binary<hi::Or>(e, [](auto a, auto b) { return std::int64_t(a || b); });
            case IRNodeType::Not: {
                const Value a = of(e.as<hi::Not>()->a);
                return a ? Value(!*a) : std::nullopt;
            }
            case IRNodeType::Select: {
                const auto *op = e.as<hi::Select>();
                const Value condition = of(op->condition);
                return condition ? of(*condition ? op->true_value : op->false_value) : std::nullopt;
            }
            default: return std::nullopt;
        }
    }

    const IndexPoint &point_;
    std::unordered_map<const hi::IRNode *, Value> memo_;
};

class VariableSubstitution : public hi::IRGraphMutator {
public:
    explicit VariableSubstitution(const std::map<std::string, Expr> &values) : values_(values) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Variable *variable) override {
        const auto found = values_.find(variable->name);
        return found == values_.end() ? Expr(variable) : found->second;
    }

private:
    const std::map<std::string, Expr> &values_;
};

/// A few assignments of values to symbols, inside their ranges, different and coprime where the ranges allow.
std::vector<IndexPoint> symbol_assignments(const SymbolRanges &symbols) {
    static constexpr std::int64_t primes[] = {7, 11, 13, 5, 17, 19, 23, 29, 31, 37};
    std::vector<IndexPoint> assignments(symbols.empty() ? 1 : 3);
    for (std::size_t a = 0; a < assignments.size(); ++a) {
        std::size_t next = a;
        for (const auto &[symbol, range] : symbols) {
            const std::int64_t wanted = primes[next % std::size(primes)] + static_cast<std::int64_t>(next / std::size(primes));
            assignments[a][symbol] = std::clamp(wanted, range.min, range.max);
            next += 3;
        }
    }
    return assignments;
}

}  // namespace

std::optional<std::int64_t> evaluate_index(const Expr &index, const IndexPoint &point) {
    return IndexEvaluator(point).of(index);
}

Expr bind_variables(const Expr &expression, const std::map<std::string, Expr> &values) {
    return values.empty() ? expression : VariableSubstitution(values).mutate(expression);
}

SamplePoints::SamplePoints(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols) {
    std::mt19937_64 random(20240607);
    constexpr int random_points = 24;
    for (const IndexPoint &symbol_values : symbol_assignments(symbols)) {
        std::vector<std::int64_t> extents;
        for (const IndexAxis &axis : axes) {
            extents.push_back(axis.extent.evaluate(symbol_values));
        }
        if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent <= 0; })) {
            continue;
        }
        const auto add = [&](auto coordinate) {
            IndexPoint point = symbol_values;
            for (std::size_t i = 0; i < axes.size(); ++i) {
                point[axes[i].name] = coordinate(i);
            }
            points_.push_back(std::move(point));
        };
        add([](std::size_t) { return std::int64_t(0); });
        add([&](std::size_t i) { return extents[i] - 1; });
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            add([&](std::size_t i) { return i == axis ? std::min<std::int64_t>(1, extents[i] - 1) : 0; });
            add([&](std::size_t i) { return i == axis ? extents[i] - 1 : 0; });
        }
        for (int n = 0; n < random_points; ++n) {
            add([&](std::size_t i) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extents[i])); });
        }
    }
}

std::vector<std::int64_t> SamplePoints::evaluate(const Expr &index) const {
    std::vector<std::int64_t> values;
    values.reserve(points_.size());
    for (const IndexPoint &point : points_) {
        const auto value = evaluate_index(index, point);
        if (!value) {
            return {};
        }
        values.push_back(*value);
    }
    return values;
}

std::vector<std::int64_t> SamplePoints::evaluate(const Extent &extent) const {
    std::vector<std::int64_t> values;
    for (const IndexPoint &point : points_) {
        values.push_back(extent.evaluate(point));
    }
    return values;
}

Expr simplest_index(const Expr &index, const std::vector<IndexAxis> &axes, const SamplePoints &samples) {
    if (index.as<hi::Variable>() || hi::is_const(index) || index.type() != Halide::Int(32)) {
        return index;
    }
    const std::vector<std::int64_t> values = samples.evaluate(index);
    if (!values.empty()) {
        if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == 0; })) {
            return Expr(0);
        }
        for (const IndexAxis &axis : axes) {
            bool equal = true;
            for (std::size_t i = 0; i < values.size() && equal; ++i) {
                equal = samples.points()[i].at(axis.name) == values[i];
            }
            if (equal) {
                return hi::Variable::make(Halide::Int(32), axis.name);
            }
        }
    }
    return contains_read(index) ? index : hi::simplify(index);
}

std::optional<LinearAddress> linear_address(const std::vector<std::int64_t> &address, const std::vector<IndexAxis> &axes,
                                            const SamplePoints &samples, const std::vector<Extent> &candidates) {
    const auto &points = samples.points();
    if (address.empty() || points.empty()) {
        return std::nullopt;
    }
    // Points come in runs, one for each assignment of the symbols: origin, far corner, then for each axis its unit and its end.
    const std::size_t runs_of = 2 + 2 * axes.size() + 24;
    LinearAddress result;
    const auto find_extent = [&](const std::vector<std::pair<std::size_t, std::int64_t>> &wanted) -> std::optional<Extent> {
        const auto fits = [&](const Extent &candidate) {
            return std::all_of(wanted.begin(), wanted.end(),
                               [&](const auto &one) { return candidate.evaluate(points[one.first]) == one.second; });
        };
        if (wanted.empty() || fits(Extent(wanted.front().second))) {
            return wanted.empty() ? Extent(0) : Extent(wanted.front().second);
        }
        for (const Extent &candidate : candidates) {
            if (fits(candidate)) {
                return candidate;
            }
        }
        return std::nullopt;
    };
    std::vector<std::pair<std::size_t, std::int64_t>> origins;
    for (std::size_t run = 0; run < points.size(); run += runs_of) {
        origins.emplace_back(run, address[run]);
    }
    const auto offset = find_extent(origins);
    if (!offset) {
        return std::nullopt;
    }
    result.offset = *offset;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        std::vector<std::pair<std::size_t, std::int64_t>> steps;
        for (std::size_t run = 0; run < points.size(); run += runs_of) {
            const std::size_t unit = run + 2 + 2 * axis;
            if (points[unit].at(axes[axis].name) == 1) {
                steps.emplace_back(unit, address[unit] - address[run]);
            }
        }
        const auto stride = find_extent(steps);
        if (!stride) {
            return std::nullopt;
        }
        result.strides.push_back(*stride);
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::int64_t expected = result.offset.evaluate(points[i]);
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            expected += result.strides[axis].evaluate(points[i]) * points[i].at(axes[axis].name);
        }
        if (expected != address[i]) {
            return std::nullopt;
        }
    }
    return result;
}

}  // namespace tilewright
