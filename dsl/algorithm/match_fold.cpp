// Recognises combiners in a Func's update by building each combiner's own pattern around wildcards.
#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool reads_func(const Expr &expression, const std::string &func) {
    bool found = false;
    visit_reads(expression, [&](const hi::Call *call) { found = found || (call->call_type == hi::Call::Halide && call->name == func); });
    return found;
}

std::vector<Expr> wildcards(const std::vector<Expr> &values) {
    std::vector<Expr> result;
    for (size_t i = 0; i < values.size(); i++) {
        result.push_back(hi::Variable::make(values[i].type(), "*term" + std::to_string(i)));
    }
    return result;
}

/// Whether `combiner` is defined on tuples of this form.
bool fits(Combiner combiner, const std::vector<Expr> &values) {
    bool floats = std::all_of(values.begin(), values.end(), [](const Expr &v) { return v.type().is_float(); });
    bool booleans = std::all_of(values.begin(), values.end(), [](const Expr &v) { return v.type().is_bool(); });
    switch (combiner) {
        case Combiner::arg_minimum:
        case Combiner::arg_maximum:
            return values.size() == 2 && !values[1].type().is_float();
        case Combiner::welford:
            return values.size() == 3 && floats;
        case Combiner::log_sum_exp:
            return values.size() == 2 && floats;
        case Combiner::logical_and:
        case Combiner::logical_or:
            return booleans;
        case Combiner::sum:
        case Combiner::product:
        case Combiner::minimum:
        case Combiner::maximum:
            return !booleans;
        default:
            return true;
    }
}

/// Patterns of hand-written Halide updates for a single value: plain operators on integers, Halide's own min and max.
std::vector<Expr> plain_patterns(Combiner combiner, const Expr &a, const Expr &b) {
    switch (combiner) {
        case Combiner::sum:
            return {hi::Add::make(a, b), hi::Add::make(b, a)};
        case Combiner::product:
            return {hi::Mul::make(a, b), hi::Mul::make(b, a)};
        case Combiner::minimum:
            return {hi::Min::make(a, b), hi::Min::make(b, a)};
        case Combiner::maximum:
            return {hi::Max::make(a, b), hi::Max::make(b, a)};
        default:
            return {};
    }
}

struct Match {
    Combiner combiner;
    std::vector<Expr> terms;
};

std::optional<std::vector<Expr>> bind_terms(const std::vector<Expr> &patterns, const std::vector<Expr> &values, const std::string &func) {
    std::map<std::string, Expr> bindings;
    for (size_t i = 0; i < values.size(); i++) {
        bindings["*term" + std::to_string(i)] = Expr();
    }
    for (size_t i = 0; i < values.size(); i++) {
        if (!match(patterns[i], values[i], bindings)) {
            return std::nullopt;
        }
    }
    std::vector<Expr> terms;
    for (size_t i = 0; i < values.size(); i++) {
        const Expr &term = bindings["*term" + std::to_string(i)];
        if (!term.defined() || reads_func(term, func)) {
            return std::nullopt;
        }
        terms.push_back(term);
    }
    return terms;
}

/// Finds the combiner for which values == combine(accumulator, terms).
std::optional<Match> match_combiner(const std::vector<Expr> &accumulator, const std::vector<Expr> &values, const std::string &func) {
    using enum Combiner;
    std::vector<Expr> terms = wildcards(values);
    for (Combiner combiner : {sum, product, minimum, maximum, logical_and, logical_or, arg_minimum, arg_maximum, welford, log_sum_exp}) {
        if (!fits(combiner, values)) {
            continue;
        }
        if (auto bound = bind_terms(combine(combiner, accumulator, terms), values, func)) {
            return Match{combiner, *bound};
        }
        if (values.size() == 1) {
            for (const Expr &pattern : plain_patterns(combiner, accumulator[0], terms[0])) {
                if (auto bound = bind_terms({pattern}, values, func)) {
                    return Match{combiner, *bound};
                }
            }
        }
    }
    bool free_of_self = std::none_of(values.begin(), values.end(), [&](const Expr &v) { return reads_func(v, func); });
    return free_of_self ? std::optional(Match{last, values}) : std::nullopt;
}

std::vector<std::string> domain_variables(const hi::Definition &update) {
    std::vector<std::string> names;
    for (const hi::ReductionVariable &variable : update.schedule().rvars()) {
        names.push_back(variable.var);
    }
    return names;
}

bool is_variable(const Expr &e, const std::string &name) {
    const auto *variable = e.as<hi::Variable>();
    return variable && variable->name == name;
}

/// The argument whose place is an RVar while all others are their own Var; -1 where all are their own, -2 otherwise.
int moved_argument(const hi::Function &function, const std::vector<Expr> &places, const std::vector<std::string> &variables) {
    int moved = -1;
    for (size_t i = 0; i < places.size(); i++) {
        if (is_variable(places[i], function.args()[i])) {
            continue;
        }
        bool steps = std::any_of(variables.begin(), variables.end(), [&](const std::string &v) { return is_variable(places[i], v); });
        if (!steps || moved != -1) {
            return -2;
        }
        moved = static_cast<int>(i);
    }
    return moved;
}

std::vector<Expr> self_reads(const hi::Function &function, const std::vector<Expr> &places) {
    std::vector<Expr> result;
    for (int i = 0; i < function.outputs(); i++) {
        result.push_back(hi::Call::make(function, places, i));
    }
    return result;
}

}  // namespace

std::optional<Fold> match_fold(const Halide::Func &func) {
    hi::Function function = func.function();
    if (function.has_extern_definition() || function.updates().size() != 1) {
        return std::nullopt;
    }
    const hi::Definition &update = function.update(0);
    std::vector<Expr> places = inline_lets(update.args()), values = inline_lets(update.values());
    Fold fold;
    fold.initial = inline_lets(function.definition().values());
    fold.variables = domain_variables(update);
    int moved = moved_argument(function, places, fold.variables);
    if (moved == -2) {
        return std::nullopt;
    }
    std::vector<Expr> accumulator = self_reads(function, places);
    if (moved >= 0) {
        std::vector<Expr> before = places;
        before[moved] = max(places[moved] - 1, 0);
        accumulator = self_reads(function, before);
        for (size_t i = 0; i < accumulator.size(); i++) {
            accumulator[i] = hi::Select::make(places[moved] > 0, accumulator[i], fold.initial[i]);
        }
        fold.scan_axis = moved;
    }
    auto matched = match_combiner(accumulator, values, function.name());
    if (!matched || (moved >= 0 && matched->combiner == Combiner::last)) {
        fold.combiner = Combiner::general;
        fold.terms = values;
        return moved >= 0 ? std::nullopt : std::optional(fold);
    }
    fold.combiner = matched->combiner;
    fold.terms = matched->terms;
    return fold;
}

std::optional<ScatterUpdate> match_scatter(const Halide::Func &func) {
    hi::Function function = func.function();
    if (function.has_extern_definition() || function.updates().size() != 1) {
        return std::nullopt;
    }
    const hi::Definition &update = function.update(0);
    ScatterUpdate scatter;
    scatter.places = inline_lets(update.args());
    if (std::none_of(scatter.places.begin(), scatter.places.end(), is_indirect)) {
        return std::nullopt;
    }
    std::vector<Expr> values = inline_lets(update.values());
    scatter.initial = inline_lets(function.definition().values());
    scatter.variables = domain_variables(update);
    scatter.terms = values;
    if (auto matched = match_combiner(self_reads(function, scatter.places), values, function.name())) {
        scatter.combiner = matched->combiner;
        scatter.terms = matched->terms;
    }
    return scatter;
}

}  // namespace tilewright
