#include "lowering/fusion/sample_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "dsl/algorithm/expression.h"
#include "lowering/fusion/index_evaluator.h"

namespace tilewright {

using Halide::Expr;

namespace {

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
