#include "lowering/nests/register_fold.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

bool is_constant(const Expr &e, double value) {
    const auto *op = e.as<hi::FloatImm>();
    return op && op->value == value;
}

}  // namespace

std::optional<std::vector<Expr>> fold_registers(NestWork &work, const Member &member, Combiner combiner, const std::vector<Expr> &terms,
                                                const std::set<std::string> &held) {
    const bool moments = combiner == Combiner::welford && is_constant(terms[1], 0) && is_constant(terms[2], 1);
    const bool exponentials = combiner == Combiner::log_sum_exp && is_constant(terms[1], 1);
    if (!moments && !exponentials) {
        return std::nullopt;
    }
    const Stage &s = work.stage(member.stage);
    const Halide::Type type = terms[0].type();
    const std::set<std::string> all = joined(member.axes, member.reduction_axes);
    const auto leaves = work.register_leaves(all), own = work.register_leaves(member.axes);
    const std::vector<Expr> place = place_in(leaves), own_place = place_in(own), guards = work.guards_of(all);
    const auto scalar = [&](const std::string &suffix, Combiner kind) {
        const tile::Buffer buffer = work.register_buffer(s.name() + suffix, {type}, own);
        const tile::CombinerDefinition definition = combiner_definition(work.unique(buffer.name + "_combine"), kind, {type});
        work.launch.combiners.push_back(definition);
        return std::pair(buffer, definition);
    };
    const auto add = [&](const std::pair<tile::Buffer, tile::CombinerDefinition> &into, const Expr &term, const std::vector<int> &needs,
                         tile::Block first) {
        Piece piece;
        piece.name = into.first.name;
        piece.loops = work.loops_of(all);
        piece.reduces = held;
        piece.needs = needs;
        const auto [buffer, definition] = into;
        piece.begin = [=](const std::set<std::string> &around) {
            return over(own, around, {tile::Statement{tile::Store{buffer.name, own_place, definition.identity}}});
        };
        piece.body = [=] {
            tile::Block block = first;
            block.push_back({tile::Fold{buffer.name, definition.name, own_place, {term}}});
            return guarded(guards, block);
        };
        return work.piece_of[buffer.name] = work.add_piece(piece);
    };
    const tile::Buffer kept = work.register_buffer(s.name() + "_terms", {type}, leaves);
    const Expr term = tile::read(kept, place);
    const tile::Block keep{tile::Statement{tile::Store{kept.name, place, {terms[0]}}}};
    const std::vector<int> needs = work.needs_of(terms);
    if (exponentials) {
        const auto top = scalar("_top", Combiner::maximum), rest = scalar("_rest", Combiner::sum);
        const int first = add(top, term, needs, keep);
        const Expr top_value = tile::read(top.first, own_place);
        const Expr shift = hi::Select::make(math::isinf(top_value), hi::make_zero(type), top_value);
        add(rest, math::exp(term - shift), {first}, {});
        return std::vector<Expr>{top_value, tile::read(rest.first, own_place)};
    }
    const auto sum = scalar("_sum", Combiner::sum), squares = scalar("_squares", Combiner::sum);
    const Expr one = hi::make_one(type);
    Expr count = one;
    std::vector<int> after;
    if (guards.empty()) {
        for (const tile::Axis &axis : work.nest.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                count = held.count(leaf.name)
                            ? hi::make_const(type, count.as<hi::FloatImm>()->value * static_cast<double>(leaf.extent.value()))
                            : count;
            }
        }
    } else {
        const auto counted = scalar("_count", Combiner::sum);
        after.push_back(add(counted, one, {}, {}));
        count = tile::read(counted.first, own_place);
    }
    const int first = add(sum, term, needs, keep);
    after.push_back(first);
    const Expr mean = tile::read(sum.first, own_place) / math::maximum(count, one);
    const Expr deviation = term - mean;
    add(squares, deviation * deviation, after, {});
    return std::vector<Expr>{mean, tile::read(squares.first, own_place), count};
}

}  // namespace tilewright
