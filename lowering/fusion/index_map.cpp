#include "lowering/fusion/index_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Evaluates integer expressions at many points at once; each shared node once.
class IndexEvaluator {
public:
    using Values = std::vector<std::int64_t>;

    IndexEvaluator(const SamplePoints::Columns &columns, std::size_t count) : columns_(columns), count_(count) {}

    /// nullptr where the expression reads a tensor or an unknown variable.
    const Values *of(const Expr &e) {
        if (const auto *variable = e.as<hi::Variable>()) {
            const auto found = columns_.find(variable->name);
            return found == columns_.end() ? nullptr : &found->second;
        }
        const auto [place, is_new] = memo_.try_emplace(e.get());
        if (is_new) {
            auto values = node(e);
            memo_[e.get()] = std::move(values);
        }
        const auto &known = memo_[e.get()];
        return known ? &*known : nullptr;
    }

private:
    using Result = std::optional<Values>;

    static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::div_imp(a, b); }
    static std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::mod_imp(a, b); }

    template <typename Node, typename Function>
    Result binary(const Expr &e, Function function) {
        const auto *op = e.as<Node>();
        const Values *a = of(op->a);
        const Values *b = a ? of(op->b) : nullptr;
        if (!a || !b) {
            return std::nullopt;
        }
        Values result(count_);
        for (std::size_t i = 0; i < count_; ++i) {
            result[i] = function((*a)[i], (*b)[i]);
        }
        return result;
    }

    Result node(const Expr &e) {
        using hi::IRNodeType;
        switch (e->node_type) {
            case IRNodeType::IntImm:
                return Values(count_, e.as<hi::IntImm>()->value);
            case IRNodeType::UIntImm:
                return Values(count_, static_cast<std::int64_t>(e.as<hi::UIntImm>()->value));
            case IRNodeType::Cast: {
                const bool keeps = e.type().is_int_or_uint() && e.type().bits() >= 32;
                const Values *value = keeps ? of(e.as<hi::Cast>()->value) : nullptr;
                return value ? Result(*value) : std::nullopt;
            }
            case IRNodeType::Add:
                return binary<hi::Add>(e, [](auto a, auto b) { return a + b; });
            case IRNodeType::Sub:
                return binary<hi::Sub>(e, [](auto a, auto b) { return a - b; });
            case IRNodeType::Mul:
                return binary<hi::Mul>(e, [](auto a, auto b) { return a * b; });
            case IRNodeType::Div:
                return binary<hi::Div>(e, floor_div);
            case IRNodeType::Mod:
                return binary<hi::Mod>(e, floor_mod);
            case IRNodeType::Min:
                return binary<hi::Min>(e, [](auto a, auto b) { return std::min(a, b); });
            case IRNodeType::Max:
                return binary<hi::Max>(e, [](auto a, auto b) { return std::max(a, b); });
            case IRNodeType::EQ:
                return binary<hi::EQ>(e, [](auto a, auto b) { return std::int64_t(a == b); });
            case IRNodeType::NE:
                return binary<hi::NE>(e, [](auto a, auto b) { return std::int64_t(a != b); });
            case IRNodeType::LT:
                return binary<hi::LT>(e, [](auto a, auto b) { return std::int64_t(a < b); });
            case IRNodeType::LE:
                return binary<hi::LE>(e, [](auto a, auto b) { return std::int64_t(a <= b); });
            case IRNodeType::GT:
                return binary<hi::GT>(e, [](auto a, auto b) { return std::int64_t(a > b); });
            case IRNodeType::GE:
                return binary<hi::GE>(e, [](auto a, auto b) { return std::int64_t(a >= b); });
            case IRNodeType::And:
                return binary<hi::And>(e, [](auto a, auto b) { return std::int64_t(a && b); });
            case IRNodeType::Or:
                return binary<hi::Or>(e, [](auto a, auto b) { return std::int64_t(a || b); });
            case IRNodeType::Not: {
                const Values *a = of(e.as<hi::Not>()->a);
                if (!a) {
                    return std::nullopt;
                }
                Values result(count_);
                std::transform(a->begin(), a->end(), result.begin(), [](std::int64_t value) { return std::int64_t(!value); });
                return result;
            }
            case IRNodeType::Select:
                return select(*e.as<hi::Select>());
            case IRNodeType::Call:
                return primitive(*e.as<hi::Call>());
            default:
                return std::nullopt;
        }
    }

    Result select(const hi::Select &op) {
        const Values *condition = of(op.condition);
        const Values *yes = condition ? of(op.true_value) : nullptr;
        const Values *no = yes ? of(op.false_value) : nullptr;
        if (!no) {
            return std::nullopt;
        }
        Values result(count_);
        for (std::size_t i = 0; i < count_; ++i) {
            result[i] = (*condition)[i] ? (*yes)[i] : (*no)[i];
        }
        return result;
    }

    /// The primitives of integers of 32 or 64 bits; they wrap.
    Result primitive(const hi::Call &op) {
        const std::string_view name = math::primitive_name(&op);
        if (!op.type.is_int() || op.type.bits() < 32) {
            return std::nullopt;
        }
        const auto wrapped = [&](std::uint64_t value) {
            return op.type.bits() == 32 ? std::int64_t(static_cast<std::int32_t>(value)) : static_cast<std::int64_t>(value);
        };
        Values result(count_);
        if (name == "convert" || name == "explicit_cast") {
            const Halide::Type from = op.args[0].type();
            const Values *value = from.is_int_or_uint() ? of(op.args[0]) : nullptr;
            if (!value) {
                return std::nullopt;
            }
            std::transform(value->begin(), value->end(), result.begin(), wrapped);
            return result;
        }
        if (name != "add" && name != "sub" && name != "mul") {
            return std::nullopt;
        }
        const Values *a = of(op.args[0]);
        const Values *b = a ? of(op.args[1]) : nullptr;
        if (!b) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint64_t x = (*a)[i], y = (*b)[i];
            result[i] = wrapped(name == "add" ? x + y : name == "sub" ? x - y : x * y);
        }
        return result;
    }

    const SamplePoints::Columns &columns_;
    const std::size_t count_;
    std::unordered_map<const hi::IRNode *, Result> memo_;
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
    std::size_t next = 0;
    for (const auto &[symbol, range] : symbols) {
        std::set<std::int64_t> used;
        const std::uint64_t span = static_cast<std::uint64_t>(range.max) - static_cast<std::uint64_t>(range.min) + 1;  // 0: all of 64 bits
        for (IndexPoint &assignment : assignments) {
            std::int64_t value = primes[next % std::size(primes)] + static_cast<std::int64_t>(next / std::size(primes));
            ++next;
            if (value < range.min || value > range.max) {
                value = range.min + static_cast<std::int64_t>(static_cast<std::uint64_t>(value) % span);
            }
            // A narrow range still gives each assignment a value of its own, or a constant would pass for the symbol.
            while (used.count(value) && used.size() < span) {
                value = value == range.max ? range.min : value + 1;
            }
            used.insert(value);
            assignment[symbol] = value;
        }
    }
    return assignments;
}

}  // namespace

Expr bind_variables(const Expr &expression, const std::map<std::string, Expr> &values) {
    return values.empty() ? expression : VariableSubstitution(values).mutate(expression);
}

namespace {

constexpr std::size_t random_points = 24;

struct PointSet {
    std::shared_ptr<const std::vector<IndexPoint>> runs;
    std::shared_ptr<const SamplePoints::Columns> columns;
};

PointSet make_points(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols) {
    std::mt19937_64 random(20240607);
    auto runs = std::make_shared<std::vector<IndexPoint>>();
    auto columns = std::make_shared<SamplePoints::Columns>();
    for (const IndexAxis &axis : axes) {
        (*columns)[axis.name];
    }
    for (const IndexPoint &symbol_values : symbol_assignments(symbols)) {
        std::vector<std::int64_t> extents;
        for (const IndexAxis &axis : axes) {
            extents.push_back(axis.extent.evaluate(symbol_values));
        }
        if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent <= 0; })) {
            continue;
        }
        runs->push_back(symbol_values);
        for (std::size_t i = 0; i < axes.size(); ++i) {
            std::vector<std::int64_t> &column = (*columns)[axes[i].name];
            const std::int64_t last = extents[i] - 1;
            column.push_back(0);
            column.push_back(last);
            for (std::size_t axis = 0; axis < axes.size(); ++axis) {
                column.push_back(axis == i ? std::min<std::int64_t>(1, last) : 0);
                column.push_back(axis == i ? last : 0);
            }
            for (std::size_t n = 0; n < random_points; ++n) {
                column.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extents[i])));
            }
        }
        const std::size_t run_length = 2 + 2 * axes.size() + random_points;
        for (const auto &[symbol, value] : symbol_values) {
            (*columns)[symbol].insert((*columns)[symbol].end(), run_length, value);
        }
    }
    return {runs, columns};
}

/// Equal spaces have equal points; a model has few spaces and many stages.
const PointSet &points_of(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols) {
    constexpr std::size_t most_kept = 1024;
    thread_local std::unordered_map<std::string, PointSet> known;
    std::string key;
    for (const IndexAxis &axis : axes) {
        key += axis.name + ":" + axis.extent.to_string() + ",";
    }
    for (const auto &[symbol, range] : symbols) {
        key += fmt::format("{} {} {};", symbol, range.min, range.max);
    }
    if (known.size() > most_kept) {
        known.clear();
    }
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, make_points(axes, symbols)).first->second;
}

}  // namespace

SamplePoints::SamplePoints(const std::vector<IndexAxis> &axes, const SymbolRanges &symbols)
    : run_length_(2 + 2 * axes.size() + random_points) {
    const PointSet &points = points_of(axes, symbols);
    runs_ = points.runs;
    columns_ = points.columns;
}

std::vector<std::int64_t> SamplePoints::evaluate(const Expr &index) const {
    IndexEvaluator evaluator(*columns_, size());
    const std::vector<std::int64_t> *values = evaluator.of(index);
    return values ? *values : std::vector<std::int64_t>();
}

std::vector<std::int64_t> SamplePoints::evaluate(const Extent &extent) const {
    std::vector<std::int64_t> values;
    values.reserve(size());
    for (const IndexPoint &symbols : *runs_) {
        values.insert(values.end(), run_length_, extent.evaluate(symbols));
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
            if (samples.coordinates(axis.name) == values) {
                return hi::Variable::make(Halide::Int(32), axis.name);
            }
        }
    }
    if (contains_read(index)) {
        return index;
    }
    Halide::Internal::Scope<hi::Interval> ranges;
    for (const IndexAxis &axis : axes) {
        if (const auto extent = axis.extent.constant(); extent && *extent > 0) {
            ranges.push(axis.name, hi::Interval(0, static_cast<int>(*extent - 1)));
        }
    }
    return hi::simplify(index, true, ranges);
}

bool is_reshape(const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes, const std::vector<Extent> &sizes,
                const SamplePoints &samples) {
    std::vector<Extent> own;
    for (const IndexAxis &axis : axes) {
        own.push_back(axis.extent);
    }
    if (!(product(own) == product(sizes)) || samples.is_empty()) {
        return false;
    }
    const std::vector<Extent> strides = contiguous_strides(own), source_strides = contiguous_strides(sizes);
    std::vector<std::int64_t> difference(samples.size(), 0);
    const auto add = [&](const std::vector<std::int64_t> &places, const Extent &stride, std::int64_t sign) {
        const std::vector<std::int64_t> strides_there = samples.evaluate(stride);
        for (std::size_t p = 0; p < difference.size(); ++p) {
            difference[p] += sign * places[p] * strides_there[p];
        }
    };
    for (std::size_t i = 0; i < axes.size(); ++i) {
        add(samples.coordinates(axes[i].name), strides[i], 1);
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::vector<std::int64_t> places = samples.evaluate(indices[i]);
        if (places.empty()) {
            return false;
        }
        add(places, source_strides[i], -1);
    }
    return std::all_of(difference.begin(), difference.end(), [](std::int64_t d) { return d == 0; });
}

std::optional<LinearAddress> linear_address(const std::vector<std::int64_t> &address, const std::vector<IndexAxis> &axes,
                                            const SamplePoints &samples, const std::vector<Extent> &candidates) {
    if (address.empty() || samples.is_empty()) {
        return std::nullopt;
    }
    // Wanted: a value for each run. A constant serves where all are equal, else one of the candidates.
    using Wanted = std::vector<std::pair<std::size_t, std::int64_t>>;
    const auto find_extent = [&](const Wanted &wanted) -> std::optional<Extent> {
        if (wanted.empty()) {
            return Extent(0);
        }
        if (std::all_of(wanted.begin(), wanted.end(), [&](const auto &one) { return one.second == wanted.front().second; })) {
            return Extent(wanted.front().second);
        }
        for (const Extent &candidate : candidates) {
            if (std::all_of(wanted.begin(), wanted.end(),
                            [&](const auto &one) { return candidate.evaluate(samples.runs()[one.first]) == one.second; })) {
                return candidate;
            }
        }
        return std::nullopt;
    };
    LinearAddress result;
    Wanted origins;
    for (std::size_t run = 0; run < samples.runs().size(); ++run) {
        origins.emplace_back(run, address[run * samples.run_length()]);
    }
    const auto offset = find_extent(origins);
    if (!offset) {
        return std::nullopt;
    }
    result.offset = *offset;
    std::vector<std::int64_t> rest = address;
    const auto subtract = [&](const Extent &stride, const std::vector<std::int64_t> *places) {
        const std::vector<std::int64_t> strides = samples.evaluate(stride);
        for (std::size_t p = 0; p < rest.size(); ++p) {
            rest[p] -= strides[p] * (places ? (*places)[p] : 1);
        }
    };
    subtract(*offset, nullptr);
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        const std::vector<std::int64_t> &places = samples.coordinates(axes[axis].name);
        Wanted steps;
        for (std::size_t run = 0; run < samples.runs().size(); ++run) {
            const std::size_t unit = samples.unit_of(run, axis);
            if (places[unit] == 1) {
                steps.emplace_back(run, address[unit] - address[run * samples.run_length()]);
            }
        }
        const auto stride = find_extent(steps);
        if (!stride) {
            return std::nullopt;
        }
        result.strides.push_back(*stride);
        subtract(*stride, &places);
    }
    if (std::any_of(rest.begin(), rest.end(), [](std::int64_t r) { return r != 0; })) {
        return std::nullopt;
    }
    return result;
}

std::optional<std::int64_t> known_everywhere(const Expr &value, const std::vector<IndexAxis> &axes) {
    constexpr std::int64_t most_points = 1 << 16;
    std::vector<const IndexAxis *> mentioned;
    std::int64_t points = 1;
    for (const IndexAxis &axis : axes) {
        if (mentions(value, axis.name)) {
            const auto extent = axis.extent.constant();
            if (!extent || *extent < 1 || *extent > most_points / points) {
                return std::nullopt;
            }
            points *= *extent;
            mentioned.push_back(&axis);
        }
    }
    SamplePoints::Columns columns;
    std::int64_t step = 1;
    for (const IndexAxis *axis : mentioned) {
        std::vector<std::int64_t> &column = columns[axis->name];
        for (std::int64_t p = 0; p < points; ++p) {
            column.push_back(p / step % axis->extent.value());
        }
        step *= axis->extent.value();
    }
    IndexEvaluator evaluator(columns, static_cast<std::size_t>(points));
    const std::vector<std::int64_t> *values = evaluator.of(value);
    if (!values || std::any_of(values->begin(), values->end(), [&](std::int64_t v) { return v != values->front(); })) {
        return std::nullopt;
    }
    return values->front();
}

}  // namespace tilewright
