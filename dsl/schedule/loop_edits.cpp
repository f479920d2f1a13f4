#include "dsl/schedule/loop_edits.h"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/schedule/directive_errors.h"

namespace tilewright {
namespace {

constexpr std::size_t largest_nest = 256;  // axes of one stage: more is a runaway list, not a schedule

std::string loop_names(const ScheduledStage &stage) {
    std::string names;
    for (int index : stage.loop_order) {
        names += (names.empty() ? "" : " ") + stage.axes[index].name;
    }
    return names.empty() ? "none" : names;
}

int new_axis(ScheduledStage &stage, const Directive &directive, std::size_t argument, LoopAxis axis) {
    axis.name = word(directive, argument);
    if (stage.find_axis(axis.name) >= 0) {
        argument_error(directive, argument, fmt::format("stage '{}' has an axis '{}' already", stage.name, axis.name),
                       "choose another name");
    }
    if (stage.axes.size() >= largest_nest) {
        directive_error(directive, fmt::format("stage '{}' has {} axes", stage.name, stage.axes.size()), "split fewer loops");
    }
    stage.axes.push_back(std::move(axis));
    return static_cast<int>(stage.axes.size()) - 1;
}

/// Returns the indices of both parts.
std::pair<int, int> split(ScheduledStage &stage, int parent, const Directive &directive, std::size_t axis_argument,
                          std::size_t outer_argument, std::size_t inner_argument, std::int64_t factor) {
    must_be_serial(stage, parent, directive, axis_argument);
    LoopAxis part;
    part.reduction = stage.axes[parent].reduction;
    part.parent = parent;
    part.factor = factor;
    part.origin = LoopAxis::Origin::split_outer;
    part.extent = ceil_div(stage.axes[parent].extent, factor);
    const int outer = new_axis(stage, directive, outer_argument, part);
    part.origin = LoopAxis::Origin::split_inner;
    part.extent = factor;
    const int inner = new_axis(stage, directive, inner_argument, part);
    stage.axes[parent].children[0] = outer;
    stage.axes[parent].children[1] = inner;
    stage.axes[parent].is_loop = false;
    const auto place = std::find(stage.loop_order.begin(), stage.loop_order.end(), parent);
    *place = outer;
    stage.loop_order.insert(place + 1, inner);
    return {outer, inner};
}

/// The named loops take the places that they hold together, innermost first.
void put_in_order(ScheduledStage &stage, const std::vector<int> &innermost_first) {
    auto next = innermost_first.rbegin();
    for (int &index : stage.loop_order) {
        if (std::find(innermost_first.begin(), innermost_first.end(), index) != innermost_first.end()) {
            index = *next++;
        }
    }
}

}  // namespace

void add_root(ScheduledStage &stage, const std::string &name, const Extent &extent, bool reduction) {
    LoopAxis axis;
    axis.name = name;
    axis.extent = extent;
    axis.reduction = reduction;
    stage.loop_order.push_back(static_cast<int>(stage.axes.size()));
    stage.axes.push_back(std::move(axis));
}

int find_loop(const ScheduledStage &stage, const Directive &directive, std::size_t argument) {
    const std::string &name = word(directive, argument);
    const int index = stage.find_axis(name);
    if (index < 0) {
        argument_error(directive, argument, fmt::format("stage '{}' has no axis '{}'", stage.name, name),
                       fmt::format("its loops are {}", loop_names(stage)));
    }
    const LoopAxis &axis = stage.axes[index];
    if (axis.is_loop) {
        return index;
    }
    if (axis.children[1] >= 0) {
        argument_error(
            directive, argument, fmt::format("axis '{}' of stage '{}' was split already", name, stage.name),
            fmt::format("name one of its parts, {} or {}", stage.axes[axis.children[0]].name, stage.axes[axis.children[1]].name));
    }
    if (axis.children[0] >= 0) {
        argument_error(directive, argument, fmt::format("axis '{}' of stage '{}' was fused already", name, stage.name),
                       fmt::format("name the fused loop {}", stage.axes[axis.children[0]].name));
    }
    argument_error(directive, argument,
                   fmt::format("axis '{}' of stage '{}' went to '{}_partial' by rfactor", name, stage.name, stage.name),
                   fmt::format("edit it there: {}_partial.{}(…)", stage.name, directive.name));
}

void must_be_serial(const ScheduledStage &stage, int index, const Directive &directive, std::size_t argument) {
    const LoopAxis &axis = stage.axes[index];
    if (axis.binding != Binding::serial) {
        argument_error(directive, argument,
                       fmt::format("axis '{}' of stage '{}' is bound to {} already", axis.name, stage.name, name(axis.binding)),
                       "an axis is bound once; split it first, or remove one of the two");
    }
}

void require_reduction(const ScheduledStage &stage, int index, const Directive &directive) {
    if (stage.axes[index].reduction) {
        return;
    }
    std::string names;
    for (int other : stage.loop_order) {
        names += stage.axes[other].reduction ? (names.empty() ? "" : " ") + stage.axes[other].name : "";
    }
    argument_error(
        directive, 0, fmt::format("axis '{}' of stage '{}' is no reduction axis", stage.axes[index].name, stage.name),
        names.empty() ? fmt::format("'{}' reduces nothing; remove the directive", stage.name) : "its reduction axes are " + names);
}

void split_loop(ScheduledStage &stage, const Directive &directive) {
    split(stage, find_loop(stage, directive, 0), directive, 0, 1, 2, number(directive, 3));
}

void fuse_loops(ScheduledStage &stage, const Directive &directive) {
    const int outer = find_loop(stage, directive, 0);
    const int inner = find_loop(stage, directive, 1);
    must_be_serial(stage, outer, directive, 0);
    must_be_serial(stage, inner, directive, 1);
    const auto place = std::find(stage.loop_order.begin(), stage.loop_order.end(), outer);
    if (place + 1 == stage.loop_order.end() || *(place + 1) != inner) {
        directive_error(directive, fmt::format("loop '{}' does not stand directly inside '{}'", word(directive, 1), word(directive, 0)),
                        fmt::format("reorder them first; the loops, outermost first, are {}", loop_names(stage)));
    }
    if (stage.axes[outer].reduction != stage.axes[inner].reduction) {
        directive_error(directive, "a reduction axis cannot be fused with an axis of the value", "fuse axes of one kind");
    }
    LoopAxis fused;
    fused.reduction = stage.axes[outer].reduction;
    fused.origin = LoopAxis::Origin::fused;
    fused.parent = outer;
    fused.second_parent = inner;
    fused.extent = stage.axes[outer].extent * stage.axes[inner].extent;
    const int index = new_axis(stage, directive, 2, fused);
    for (int parent : {outer, inner}) {
        stage.axes[parent].children[0] = index;
        stage.axes[parent].is_loop = false;
    }
    *place = index;
    stage.loop_order.erase(place + 1);
}

void reorder_loops(ScheduledStage &stage, const Directive &directive) {
    std::vector<int> wanted;  // innermost first
    for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
        const int index = find_loop(stage, directive, i);
        if (std::find(wanted.begin(), wanted.end(), index) != wanted.end()) {
            argument_error(directive, i, fmt::format("axis '{}' is named twice", word(directive, i)), "name each axis once");
        }
        wanted.push_back(index);
    }
    put_in_order(stage, wanted);
}

void tile_loops(ScheduledStage &stage, const Directive &directive) {
    const int x = find_loop(stage, directive, 0);
    const int y = find_loop(stage, directive, 1);
    if (x == y) {
        argument_error(directive, 1, fmt::format("axis '{}' is named twice", word(directive, 1)), "tile takes two different axes");
    }
    const auto position = [&](int index) { return std::find(stage.loop_order.begin(), stage.loop_order.end(), index); };
    const bool x_outside = position(x) < position(y);
    const auto [xo, xi] = split(stage, x, directive, 0, 2, 4, number(directive, 6));
    const auto [yo, yi] = split(stage, y, directive, 1, 3, 5, number(directive, 7));
    put_in_order(stage, x_outside ? std::vector<int>{yi, xi, yo, xo} : std::vector<int>{xi, yi, xo, yo});
}

void bind_loops(ScheduledStage &stage, const Directive &directive, Binding binding) {
    int dimension = static_cast<int>(stage.bound_to(binding).size());
    for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
        const int index = find_loop(stage, directive, i);
        must_be_serial(stage, index, directive, i);
        if ((binding == Binding::vectorized || binding == Binding::unrolled) && !stage.axes[index].extent.is_constant()) {
            argument_error(directive, i,
                           fmt::format("axis '{}' of stage '{}' has the symbolic extent {}", word(directive, i), stage.name,
                                       stage.axes[index].extent.to_string()),
                           fmt::format("split it by a constant and {} the inner part", directive.name));
        }
        if ((binding == Binding::block || binding == Binding::thread) && dimension >= 3) {
            argument_error(directive, i, fmt::format("stage '{}' has three loops bound to {} already", stage.name, name(binding)),
                           "fuse loops before binding them");
        }
        stage.axes[index].binding = binding;
        stage.axes[index].bound_at = directive.location;
        stage.axes[index].dimension = dimension++;
    }
}

}  // namespace tilewright
