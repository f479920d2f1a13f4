#include "lowering/fusion/index_map.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/simplify.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

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

/// Whole multiples leave a remainder however deep they stand in its sum, where Halide's rules look at the outermost terms only.
class MultiplesOfModulus : public hi::IRGraphMutator {
public:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Mod *op) override {
        const Expr a = mutate(op->a);
        const auto modulus = hi::as_const_int(op->b);
        const Expr rest = modulus && *modulus > 0 ? without_multiples(a, *modulus) : a;
        return rest.same_as(op->a) ? Expr(op) : (rest.defined() ? rest : hi::make_zero(op->type)) % op->b;
    }

private:
    /// Undefined where nothing is left.
    static Expr without_multiples(const Expr &e, std::int64_t modulus) {
        if (const auto *sum = e.as<hi::Add>()) {
            const Expr a = without_multiples(sum->a, modulus), b = without_multiples(sum->b, modulus);
            return !a.defined() ? b : !b.defined() ? a : a.same_as(sum->a) && b.same_as(sum->b) ? e : a + b;
        }
        const auto *scaled = e.as<hi::Mul>();
        const auto factor = scaled ? hi::as_const_int(scaled->b) : std::nullopt;
        return factor && *factor % modulus == 0 ? Expr() : e;
    }
};

bool divides(const Extent &step, const Extent &whole) {
    return step.is_constant() && whole.is_constant() && step.value() > 0 && whole.value() % step.value() == 0;
}
Extent quotient(const Extent &whole, const Extent &step) { return step == Extent(1) ? whole : Extent(whole.value() / step.value()); }

}  // namespace

Expr bind_variables(const Expr &expression, const std::map<std::string, Expr> &values) {
    return values.empty() ? expression : VariableSubstitution(values).mutate(expression);
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
    const Expr simplified = simplify_integers(index, ranges), less = MultiplesOfModulus().mutate(simplified);
    return less.same_as(simplified) ? simplified : simplify_integers(less, ranges);
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

std::vector<Expr> reshape_indices(const std::vector<Extent> &from, const std::vector<Extent> &to) {
    const std::vector<Halide::Var> vars = argument_vars(static_cast<int>(from.size()));
    const std::vector<Extent> strides = contiguous_strides(from), to_strides = contiguous_strides(to);
    std::vector<Expr> indices;
    for (std::size_t k = 0; k < to.size(); ++k) {
        if (to[k] == Extent(1)) {
            indices.push_back(Expr(0));
            continue;
        }
        // Axes inside of the innermost one whose steps divide this dimension's add less than one of those steps.
        std::size_t last = 0;
        while (last + 1 < from.size() && !divides(strides[last], to_strides[k])) {
            ++last;
        }
        const bool is_static = std::all_of(strides.begin(), strides.end(), [](const Extent &stride) { return stride.is_constant(); });
        const Extent step = is_static && divides(strides[last], to_strides[k]) ? strides[last] : Extent(1);
        Expr number = 0;
        for (std::size_t i = 0; i < (step == Extent(1) ? from.size() : last + 1); ++i) {
            if (!(from[i] == Extent(1))) {
                number = number + Expr(vars[i]) * to_halide(quotient(strides[i], step));
            }
        }
        const Extent divisor = quotient(to_strides[k], step);
        Expr index = divisor == Extent(1) ? number : number / to_halide(divisor);
        indices.push_back(k == 0 ? index : index % to_halide(to[k]));
    }
    return indices;
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

}  // namespace tilewright
