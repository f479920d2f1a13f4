#include "lowering/nests/operand_window.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

/// An axis as the sum of its leaves, one of them replaced.
Expr axis_with(const tile::Axis &axis, const tile::Leaf &replaced, const Expr &by) {
    Expr sum = 0;
    for (const tile::Leaf &leaf : axis.leaves) {
        const Expr part = &leaf == &replaced ? by : tile::variable(leaf.name);
        if (!(leaf.extent == Extent(1)) || &leaf == &replaced) {
            const Expr scaled = leaf.stride == Extent(1) ? part : part * to_halide(leaf.stride);
            sum = hi::is_const_zero(sum) ? scaled : hi::is_const_zero(scaled) ? sum : sum + scaled;
        }
    }
    return sum;
}

struct Window {
    const tile::Axis *element_axis, *tap_axis;
    const tile::Leaf *element, *tap;
    std::int64_t element_step, tap_step;

    std::int64_t places() const { return element_step * (element->extent.value() - 1) + tap_step * (tap->extent.value() - 1) + 1; }
    static Expr times(const tile::Leaf &leaf, std::int64_t step) {
        return step == 1 ? tile::variable(leaf.name) : tile::variable(leaf.name) * static_cast<int>(step);
    }
    Expr place() const { return times(*element, element_step) + times(*tap, tap_step); }
};

/// `value` at `place` of the window instead of at an element and a tap: all of the place is given to the one that goes in single steps.
Expr at_place(const Window &window, const Expr &value, const Expr &place) {
    const bool by_element = window.element_step == 1;
    return substitute_variables(
        value, {{window.element_axis->name, axis_with(*window.element_axis, *window.element, by_element ? place : Expr(0))},
                {window.tap_axis->name, axis_with(*window.tap_axis, *window.tap, by_element ? Expr(0) : place)}});
}

bool depends_on_place_alone(const NestWork &work, const Window &window, const Expr &value) {
    const Expr own = substitute_variables(
        value, {{window.element_axis->name, axis_with(*window.element_axis, *window.element, tile::variable(window.element->name))},
                {window.tap_axis->name, axis_with(*window.tap_axis, *window.tap, tile::variable(window.tap->name))}});
    return hi::graph_equal(canonical_indices(own, work.nest.ranges),
                           canonical_indices(at_place(window, value, window.place()), work.nest.ranges));
}

/// A place is loaded where the first element that needs it is inside: guards are upper bounds.
std::vector<Expr> guards_at(const NestWork &work, const Window &window, std::set<std::string> axes, const Expr &place) {
    axes.erase(window.tap_axis->name);
    const int behind = static_cast<int>(window.tap_step * (window.tap->extent.value() - 1)), step = static_cast<int>(window.element_step);
    const Expr first = hi::Max::make(step == 1 ? place - behind : (place + (step - 1 - behind)) / step, Expr(0));
    const Expr element = axis_with(*window.element_axis, *window.element, first);
    std::vector<Expr> guards;
    for (const Expr &guard : work.guards_of(axes)) {
        guards.push_back(substitute_variables(guard, {{window.element_axis->name, element}}));
    }
    return guards;
}

const tile::Leaf *unrolled_leaf(const tile::Axis &axis) {
    const tile::Leaf *last = axis.leaves.empty() ? nullptr : &axis.leaves.back();
    return last && last->level == Level::unroll && last->stride == Extent(1) && last->extent.value() > 1 ? last : nullptr;
}

std::optional<Window> find_window(const NestWork &work, const Stage &stage, const std::set<std::string> &axes, const Expr &value) {
    const Member *member = work.nest.find_member(stage_index(work.kernel.algorithm, stage.name()));
    constexpr std::int64_t largest_step = 4;
    for (const std::string &e : axes) {
        for (const std::string &t : axes) {
            const tile::Axis *element_axis = work.nest.find_axis(e), *tap_axis = work.nest.find_axis(t);
            const tile::Leaf *element = unrolled_leaf(*element_axis), *tap = unrolled_leaf(*tap_axis);
            if (!member->axes.count(e) || !member->reduction_axes.count(t) || !element || !tap || !tap_axis->exact()) {
                continue;
            }
            for (std::int64_t step = 1; step <= largest_step; ++step) {
                for (const Window &window :
                     {Window{element_axis, tap_axis, element, tap, step, 1}, Window{element_axis, tap_axis, element, tap, 1, step}}) {
                    if (depends_on_place_alone(work, window, value)) {
                        return window;
                    }
                }
            }
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Expr> window_operand(NestWork &work, const Stage &stage, const std::set<std::string> &axes, const Expr &value) {
    for (const auto &[known, read] : work.operands) {
        if (hi::graph_equal(known, value)) {
            return read;
        }
    }
    const auto window = find_window(work, stage, axes, value);
    if (!window) {
        return std::nullopt;
    }
    std::vector<const tile::Leaf *> others;
    for (const tile::Leaf *leaf : work.register_leaves(axes)) {
        if (leaf != window->element && leaf != window->tap) {
            others.push_back(leaf);
        }
    }
    tile::Buffer buffer = work.register_buffer(stage.name() + "_window", {value.type()}, others);
    tile::Buffer &declared = *work.launch.find_buffer(buffer.name);
    declared.extents.insert(declared.extents.begin(), Extent(window->places()));
    declared.strides = contiguous_strides(declared.extents);
    buffer = declared;
    const std::string place_name = buffer.name + "_place";
    std::vector<Expr> place = place_in(others), read_place = place;
    place.insert(place.begin(), tile::variable(place_name));
    read_place.insert(read_place.begin(), window->place());
    const std::vector<Expr> guards = guards_at(work, *window, axes, tile::variable(place_name));
    const Expr at = canonical_indices(at_place(*window, value, tile::variable(place_name)), work.nest.ranges);
    Piece piece;
    piece.name = buffer.name;
    piece.loops = work.serial_loops(axes);
    piece.needs = work.needs_of({value});
    const auto loops = [=, places = window->places()](tile::Block body) {
        return tile::Block{tile::Statement{tile::For{place_name, places, Level::unroll, over(others, {}, std::move(body))}}};
    };
    piece.body = [=] {
        tile::Block block;
        if (!guards.empty()) {
            block = loops({tile::Statement{tile::Store{buffer.name, place, {hi::make_zero(value.type())}}}});
        }
        const tile::Block load = loops(guarded(guards, {tile::Statement{tile::Store{buffer.name, place, {at}}}}));
        block.insert(block.end(), load.begin(), load.end());
        return block;
    };
    work.piece_of[buffer.name] = work.add_piece(piece);
    work.operands.emplace_back(value, tile::read(buffer, read_place));
    return work.operands.back().second;
}

}  // namespace tilewright
