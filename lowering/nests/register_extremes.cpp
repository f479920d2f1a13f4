#include "lowering/nests/register_extremes.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "lowering/passes/operation.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// The loops that are held go along the axis from its beginning to its end.
bool goes_up(const NestWork &work, const tile::Axis &axis, const std::set<std::string> &held) {
    std::vector<std::int64_t> strides;
    for (const NestLoop &loop : work.nest.loops) {
        const tile::Leaf &leaf = work.nest.leaf(loop);
        if (!held.count(leaf.name)) {
            continue;
        }
        if (work.nest.axes[loop.axis].name != axis.name || !leaf.stride.is_constant()) {
            return false;
        }
        strides.push_back(leaf.stride.value());
    }
    return std::is_sorted(strides.rbegin(), strides.rend());
}

/// A place of an axis as 32 bits; undefined where the term is something else.
Expr narrow_place(const NestWork &work, const Expr &term, const std::set<std::string> &held) {
    const Operation operation = operation_of(term);
    const Expr place = operation.name == "convert" ? operation.operands[0] : Expr();
    const tile::Axis *axis = place.defined() && place.type() == Halide::Int(32) ? work.nest.find_axis(as_variable(place)) : nullptr;
    return axis && goes_up(work, *axis, held) ? place : Expr();
}

/// (value, place); a negative place: none yet.
tile::CombinerDefinition first_extreme(const std::string &name, Combiner kind, Halide::Type type) {
    tile::CombinerDefinition definition = combiner_definition(name, kind, {type, Halide::Int(32)});
    const Expr held = hi::Variable::make(type, definition.left[0]), held_place = hi::Variable::make(Halide::Int(32), definition.left[1]);
    const Expr next = hi::Variable::make(type, definition.right[0]), next_place = hi::Variable::make(Halide::Int(32), definition.right[1]);
    const bool largest = kind == Combiner::arg_maximum;
    Expr better = largest ? math::gt(next, held) : math::lt(next, held);
    if (type.is_float()) {  // the first NaN wins
        better = !(largest ? math::le(next, held) : math::ge(next, held)) && !math::isnan(held);
    }
    const Expr take = better || held_place < 0;
    definition.result = {hi::Select::make(take, next, held), hi::Select::make(take, next_place, held_place)};
    definition.identity[1] = Expr(-1);
    return definition;
}

}  // namespace

std::optional<std::vector<Expr>> fold_extremes(NestWork &work, const Member &member, Combiner combiner, const std::vector<Expr> &terms,
                                               const std::set<std::string> &held) {
    const bool finds_places = (combiner == Combiner::arg_maximum || combiner == Combiner::arg_minimum) && terms.size() == 2;
    const Expr term_place = finds_places ? narrow_place(work, terms[1], held) : Expr();
    if (!term_place.defined()) {
        return std::nullopt;
    }
    const Stage &s = work.stage(member.stage);
    const Halide::Type type = terms[0].type();
    const std::set<std::string> all = joined(member.axes, member.reduction_axes);
    const auto own = work.register_leaves(member.axes);
    const std::vector<Expr> own_place = place_in(own), guards = work.guards_of(all);
    tile::Buffer buffer = work.register_buffer(s.name() + "_first", {type, Halide::Int(32)}, own);
    const tile::CombinerDefinition definition = first_extreme(work.unique(buffer.name + "_combine"), combiner, type);
    work.launch.combiners.push_back(definition);
    work.set_combiner(buffer, definition);
    Piece piece;
    piece.name = buffer.name;
    piece.loops = work.loops_of(all);
    piece.reduces = held;
    piece.needs = work.needs_of(terms);
    piece.begin = [=](const std::set<std::string> &around) {
        return over(own, around, {tile::Statement{tile::Store{buffer.name, own_place, definition.identity}}});
    };
    piece.body = [=] {
        return guarded(guards, {tile::Statement{tile::Fold{buffer.name, definition.name, own_place, {terms[0], term_place}}}});
    };
    work.piece_of[buffer.name] = work.add_piece(piece);
    const Expr place = tile::read(buffer, own_place, 1);
    return std::vector<Expr>{tile::read(buffer, own_place, 0),
                             hi::Select::make(place < 0, Halide::Int(64).max(), math::convert(Halide::Int(64), place))};
}

}  // namespace tilewright
