#include "lowering/nests/match_axes.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

void AxisMatcher::by_reads(const Stage &s, const std::vector<PlacedRead> &own, const std::map<std::string, std::vector<PlacedRead>> &known,
                           const std::vector<std::string> &wanted, Substitution &environment) const {
    for (const PlacedRead &mine : own) {
        const auto others = known.find(mine.producer);
        for (const PlacedRead &other : others == known.end() ? std::vector<PlacedRead>() : others->second) {
            if (auto found = unify(mine, other, wanted, environment, s)) {
                environment = *found;
            }
        }
    }
}

std::optional<Substitution> AxisMatcher::unify(const PlacedRead &mine, const PlacedRead &other, const std::vector<std::string> &wanted,
                                               const Substitution &environment, const Stage &s) const {
    Substitution result = environment;
    std::vector<std::size_t> later;
    bool gained = false;
    for (std::size_t i = 0; i < mine.indices.size(); ++i) {
        std::string open;
        int unknown = 0;
        for (const std::string &name : variables_of(mine.indices[i])) {
            if (std::find(wanted.begin(), wanted.end(), name) != wanted.end() && !result.count(name)) {
                open = name;
                ++unknown;
            }
        }
        if (unknown > 1) {
            later.push_back(i);
            continue;
        }
        if (unknown == 1) {
            // other = rest + open: solved for the one that is not known.
            const Expr rest = substitute_variables(substitute_variables(mine.indices[i], result), {{open, Expr(0)}});
            const Expr candidate = difference_of(other.indices[i], rest, nest_.ranges);
            Substitution with = result;
            with[open] = candidate;
            if (!(extent_of(s, open) == extent_at(candidate)) ||
                !equal_indices(substitute_variables(mine.indices[i], with), other.indices[i], nest_.ranges)) {
                return std::nullopt;
            }
            result = with;
            gained = true;
        } else if (!equal_indices(substitute_variables(mine.indices[i], result), other.indices[i], nest_.ranges)) {
            return std::nullopt;
        }
    }
    if (!later.empty()) {
        return std::nullopt;
    }
    return gained ? std::optional(result) : std::nullopt;
}

/// The extent that an index of the nest runs over: an axis's, or that of an argument of the anchor which it is.
Extent AxisMatcher::extent_at(const Expr &index) const {
    if (const tile::Axis *found = nest_.find_axis(as_variable(index))) {
        return found->extent;
    }
    const Stage &anchor = algorithm_.stages[nest_.anchor];
    for (const auto &[name, root] : roots_) {
        if (equal_indices(root, index, nest_.ranges)) {
            return extent_of(anchor, name);
        }
    }
    return Extent(-1);
}

bool AxisMatcher::by_anchor(const Stage &s, const std::vector<std::string> &variables, Member &member) const {
    const Stage &anchor = algorithm_.stages[nest_.anchor];
    const hi::Function function = anchor.func.function();
    std::vector<std::string> candidates = function.args();
    if (function.has_update_definition()) {
        for (const auto &variable : function.update(0).schedule().rvars()) {
            candidates.push_back(variable.var);
        }
    }
    Substitution taken;
    for (const std::string &argument : s.func.function().args()) {
        taken[argument] = member.environment.at(argument);
    }
    Substitution result = taken;
    for (const std::string &variable : variables) {
        const auto is_free = [&](const std::string &name) {
            const auto root = roots_.find(name);
            return root != roots_.end() && extent_of(anchor, name) == extent_of(s, variable) &&
                   std::none_of(result.begin(), result.end(),
                                [&](const auto &e) { return equal_indices(e.second, root->second, nest_.ranges); });
        };
        const auto found = std::find_if(candidates.begin(), candidates.end(), is_free);
        if (found == candidates.end()) {
            return false;
        }
        result[variable] = roots_.at(*found);
    }
    Member matched = member;
    matched.environment = result;
    if (!disjoint(s, variables, matched)) {
        return false;
    }
    member.environment = std::move(result);
    return true;
}

bool AxisMatcher::disjoint(const Stage &s, const std::vector<std::string> &variables, const Member &member) const {
    std::set<std::string> used, reduced;
    Extent terms = 1, covered = 1;
    for (const auto &[name, place] : member.environment) {
        const bool reduces = std::find(variables.begin(), variables.end(), name) != variables.end();
        terms = reduces ? terms * extent_of(s, name) : terms;
        for (const std::string &axis : variables_of(place)) {
            if (nest_.find_axis(axis)) {
                (reduces ? reduced : used).insert(axis);
            }
        }
    }
    for (const std::string &axis : reduced) {
        covered = covered * nest_.find_axis(axis)->extent;
        if (used.count(axis)) {
            return false;
        }
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (equal_indices(member.environment.at(variables[i]), member.environment.at(variables[k]), nest_.ranges) &&
                !(extent_of(s, variables[i]) == Extent(1))) {
                return false;
            }
        }
    }
    return covered == terms;
}

void AxisMatcher::by_extent(const std::string &variable, const Extent &extent, Substitution &environment) const {
    for (const tile::Axis &axis : nest_.axes) {
        const bool taken =
            std::any_of(environment.begin(), environment.end(), [&](const auto &e) { return as_variable(e.second) == axis.name; });
        if (axis.extent == extent && !taken) {
            environment[variable] = tile::variable(axis.name);
            return;
        }
    }
}

}  // namespace tilewright
