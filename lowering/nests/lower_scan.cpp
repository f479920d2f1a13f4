#include "lowering/nests/lower_members.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

struct ScanShape {
    std::set<std::string> outer, inner;  ///< serial leaves before and after the thread leaf
    const tile::Leaf *threads = nullptr;
};
/// The scan runs in the order of the axis: leaves must stand as they count.
ScanShape scan_shape(NestWork &work, const tile::Axis &axis, const Stage &s) {
    ScanShape shape;
    for (const tile::Leaf &leaf : axis.leaves) {
        if (leaf.level == Level::grid || leaf.level == Level::cluster || (leaf.level == Level::thread && shape.threads)) {
            user_error("kernel {}: stage '{}' scans along '{}', which is spread over blocks; spread it over one group of threads",
                       work.kernel.name, s.name(), axis.name);
        }
        if (leaf.level == Level::thread) {
            shape.threads = &leaf;
        } else {
            (shape.threads ? shape.inner : shape.outer).insert(leaf.name);
        }
    }
    std::vector<std::string> order;
    for (const NestLoop &loop : work.nest.loops) {
        if (work.nest.axes[loop.axis].name == axis.name) {
            order.push_back(work.nest.leaf(loop).name);
        }
    }
    std::vector<std::string> counted;
    for (const tile::Leaf &leaf : axis.leaves) {
        if (leaf.level != Level::thread) {
            counted.push_back(leaf.name);
        }
    }
    if (order != counted) {
        user_error("kernel {}: the loops over '{}', along which stage '{}' scans, are not in the order in which they count",
                   work.kernel.name, axis.name, s.name());
    }
    return shape;
}

std::vector<Expr> elements(const tile::Buffer &buffer, const std::vector<Expr> &place) {
    std::vector<Expr> result;
    for (std::size_t i = 0; i < buffer.types.size(); ++i) {
        result.push_back(tile::read(buffer, place, static_cast<int>(i)));
    }
    return result;
}

void scan_serially(NestWork &work, const Member &member, const Stage &s, const ScanShape &shape, const tile::CombinerDefinition &definition,
                   const std::vector<Expr> &terms, const tile::Buffer &result, const std::vector<const tile::Leaf *> &leaves,
                   const std::vector<const tile::Leaf *> &other_leaves) {
    tile::Buffer running = work.register_buffer(s.name() + "_running", result.types, other_leaves);
    work.set_combiner(running, definition);
    const std::vector<Expr> place = place_in(leaves), other_place = place_in(other_leaves);
    Piece piece;
    piece.name = s.name();
    piece.loops = work.loops_of(member.axes);
    piece.carries = shape.outer;
    piece.keeps_per_iteration = false;
    piece.needs = work.needs_of(terms);
    piece.begin = [=](const std::set<std::string> &around) {
        return over(other_leaves, around, {tile::Statement{tile::Store{running.name, other_place, definition.identity}}});
    };
    const std::vector<Expr> guards = work.guards_of(member.axes);
    piece.body = [=] {
        tile::Block step{tile::Statement{tile::Fold{running.name, definition.name, other_place, terms}},
                         tile::Statement{tile::Store{result.name, place, elements(running, other_place)}}};
        return guarded(guards, step);
    };
    work.piece_of[result.name] = work.add_piece(piece);
}

void scan_threads(NestWork &work, const Member &member, const Stage &s, const ScanShape &shape, const tile::CombinerDefinition &definition,
                  const std::vector<Expr> &terms, const tile::Buffer &result, const std::vector<const tile::Leaf *> &leaves,
                  const std::vector<const tile::Leaf *> &other_leaves) {
    for (const std::string &name : shape.inner) {
        const auto loop =
            std::find_if(work.nest.loops.begin(), work.nest.loops.end(), [&](const NestLoop &l) { return work.nest.leaf(l).name == name; });
        if (work.nest.leaf(*loop).level == Level::loop && !(work.nest.leaf(*loop).extent == Extent(1))) {
            user_error("kernel {}: loop '{}', inside of the threads that scan '{}', must be unrolled or vectorized", work.kernel.name, name,
                       s.name());
        }
    }
    const std::int64_t threads = shape.threads->extent.value(), stride = shape.threads->unit_stride.value();
    const std::int64_t together = threads * stride;
    const auto is_power = [](std::int64_t n) { return (n & (n - 1)) == 0; };
    if (stride > 16 || !is_power(stride) || !(together <= 32 ? is_power(together) : together % 32 == 0)) {
        user_error(
            "kernel {}: stage '{}' is scanned by {} threads that stand {} apart; split '{}' so that they stand 1, 2, 4, 8 or 16 apart, the "
            "first or second of "
            "gpu_threads, and fill 2, 4, 8, 16 or a multiple of 32 threads",
            work.kernel.name, s.name(), threads, stride, shape.threads->name);
    }
    tile::Buffer prefix = work.register_buffer(s.name() + "_prefix", result.types, leaves);
    tile::Buffer total = work.register_buffer(s.name() + "_total", result.types, other_leaves);
    tile::Buffer before = work.register_buffer(s.name() + "_before", result.types, other_leaves);
    tile::Buffer carry = work.register_buffer(s.name() + "_carry", result.types, other_leaves);
    for (tile::Buffer *buffer : {&prefix, &total, &before, &carry}) {
        work.set_combiner(*buffer, definition);
    }
    const std::vector<Expr> place = place_in(leaves), other_place = place_in(other_leaves);
    const std::vector<Expr> guards = work.guards_of(member.axes);
    Piece local;
    local.name = s.name() + " within a thread";
    local.loops = work.loops_of(member.axes);
    local.reduces = shape.inner;
    local.needs = work.needs_of(terms);
    local.begin = [=](const std::set<std::string> &around) {
        return over(other_leaves, around, {tile::Statement{tile::Store{total.name, other_place, definition.identity}}});
    };
    local.body = [=] {
        return guarded(guards, {tile::Statement{tile::Fold{total.name, definition.name, other_place, terms}},
                                tile::Statement{tile::Store{prefix.name, place, elements(total, other_place)}}});
    };
    const int first = work.add_piece(local);
    Piece exchange;
    exchange.name = s.name() + " across threads";
    exchange.loops = work.loops_of(member.axes);
    for (const std::string &inner : shape.inner) {
        exchange.loops.erase(inner);
    }
    exchange.carries = shape.outer;
    exchange.keeps_per_iteration = false;
    exchange.needs = {first};
    exchange.begin = [=](const std::set<std::string> &around) {
        return over(other_leaves, around, {tile::Statement{tile::Store{carry.name, other_place, definition.identity}}});
    };
    const tile::Combine::Group group{static_cast<int>(shape.threads->extent.value()), static_cast<int>(shape.threads->unit_stride.value())};
    const std::string shared = work.exchange_buffer(total, {group});
    exchange.body = [=] {
        return tile::Block{
            tile::Statement{tile::ScanThreads{total.name, before.name, carry.name, definition.name, other_place, group, shared}}};
    };
    const int second = work.add_piece(exchange);
    Piece value;
    value.name = s.name();
    value.loops = work.loops_of(member.axes);
    value.needs = {first, second};
    value.keeps_per_iteration = false;
    Substitution both;
    const std::vector<Expr> left = elements(before, other_place), right = elements(prefix, place);
    std::vector<Expr> combined;
    for (std::size_t i = 0; i < left.size(); ++i) {
        both[definition.left[i]] = left[i];
        both[definition.right[i]] = right[i];
    }
    for (const Expr &e : definition.result) {
        combined.push_back(substitute_variables(e, both));
    }
    value.body = [=] { return guarded(guards, {tile::Statement{tile::Store{result.name, place, combined}}}); };
    work.piece_of[result.name] = work.add_piece(value);
}

}  // namespace

void lower_scan(NestWork &work, const Member &member, const Fold &fold) {
    const Stage &s = work.stage(member.stage);
    const std::vector<Halide::Type> types = s.func.types();
    const std::string axis_name = as_variable(member.environment.at(s.func.function().args()[fold.scan_axis]));
    const tile::Axis *axis = work.nest.find_axis(axis_name);
    if (!axis) {
        user_error("kernel {}: stage '{}' scans along an axis that is fused with others; leave it apart", work.kernel.name, s.name());
    }
    const auto leaves = work.register_leaves(member.axes);
    const std::vector<Expr> place = place_in(leaves);
    const tile::CombinerDefinition definition = combiner_definition(work.unique(s.name() + "_combine"), fold.combiner, types);
    work.launch.combiners.push_back(definition);
    std::vector<Expr> terms;
    for (const Expr &e : fold.terms) {
        terms.push_back(work.stage_values.evaluate(e, member.environment, member.stage));
    }
    const ScanShape shape = scan_shape(work, *axis, s);
    tile::Buffer result = work.register_buffer(s.name(), types, leaves);
    work.set_combiner(result, definition);
    work.stage_values.keep(member.stage, result, place);
    // What does not vary along the scanned axis, register dimensions of other axes, indexes the running values.
    std::set<std::string> others = member.axes;
    others.erase(axis_name);
    const auto other_leaves = work.register_leaves(others);
    shape.threads ? scan_threads(work, member, s, shape, definition, terms, result, leaves, other_leaves)
                  : scan_serially(work, member, s, shape, definition, terms, result, leaves, other_leaves);
    std::vector<Expr> values;
    for (std::size_t i = 0; i < types.size(); ++i) {
        values.push_back(tile::read(result, place, static_cast<int>(i)));
    }
    work.add_stores(member, values);
}

}  // namespace tilewright
