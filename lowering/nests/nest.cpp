#include "lowering/nests/nest.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

const tile::Axis *Nest::find_axis(const std::string &name) const {
    auto found = std::find_if(axes.begin(), axes.end(), [&](const tile::Axis &a) { return a.name == name; });
    return found == axes.end() ? nullptr : &*found;
}

const Member *Nest::find_member(int stage) const {
    auto found = std::find_if(members.begin(), members.end(), [&](const Member &m) { return m.stage == stage; });
    return found == members.end() ? nullptr : &*found;
}

int stage_index(const Algorithm &algorithm, const std::string &name) {
    auto found = std::find_if(algorithm.stages.begin(), algorithm.stages.end(), [&](const Stage &s) { return s.name() == name; });
    return found == algorithm.stages.end() ? -1 : static_cast<int>(found - algorithm.stages.begin());
}

std::vector<Expr> right_hand_sides(const Stage &stage) {
    const hi::Function function = stage.func.function();
    if (function.has_update_definition()) {
        if (auto fold = match_fold(stage.func)) {
            return fold->terms;
        }
        return inline_lets(function.update(0).values());
    }
    return inline_lets(function.definition().values());
}

std::vector<Expr> definitions_of(const Stage &stage) {
    std::vector<Expr> all = right_hand_sides(stage);
    const hi::Function function = stage.func.function();
    if (function.has_update_definition()) {
        const std::vector<Expr> initial = inline_lets(function.definition().values());
        all.insert(all.end(), initial.begin(), initial.end());
    }
    return all;
}

Extent extent_of(const Stage &stage, const std::string &variable) {
    const hi::Function function = stage.func.function();
    for (std::size_t i = 0; i < stage.extents.size(); ++i) {
        if (function.args()[i] == variable) {
            return stage.extents[i];
        }
    }
    const auto &rvars = function.update(0).schedule().rvars();
    for (std::size_t i = 0; i < rvars.size(); ++i) {
        if (rvars[i].var == variable) {
            return stage.reduction_extents[i];
        }
    }
    return Extent(-2);
}

std::optional<std::pair<std::string, std::string>> scan_variable(const Stage &stage) {
    const hi::Function function = stage.func.function();
    if (!function.has_update_definition() || match_scatter(stage.func)) {
        return std::nullopt;
    }
    const auto fold = match_fold(stage.func);
    if (!fold || fold->scan_axis < 0) {
        return std::nullopt;
    }
    return std::pair(fold->variables.at(0), function.args()[fold->scan_axis]);
}

}  // namespace tilewright
