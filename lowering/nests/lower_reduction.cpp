#include "lowering/nests/lower_members.h"

#include <algorithm>
#include <utility>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/operand_registers.h"
#include "lowering/nests/register_fold.h"
#include "lowering/nests/split_reduction.h"
#include "lowering/nests/stage_anchors.h"
#include "lowering/nests/staged_reads.h"
#include "lowering/passes/assume_conditions.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

/// Accumulators live in registers: a serial loop over the value may not stand inside of one that it reduces.
void check_loops(NestWork &work, const Member &member, const Stage &s) {
    bool reducing = false;
    for (const NestLoop &loop : work.nest.loops) {
        const std::string &axis = work.nest.axes[loop.axis].name;
        reducing = reducing || member.reduction_axes.count(axis) > 0;
        if (reducing && member.axes.count(axis) && work.nest.leaf(loop).level == Level::loop && !(work.nest.leaf(loop).extent == Extent(1))) {
            user_error("kernel {}: stage '{}' is reduced over a loop that stands outside of its own loop '{}', so that its partial results would not "
                       "fit in registers; unroll '{}' or move it outside", work.kernel.name, s.name(), work.nest.leaf(loop).name, work.nest.leaf(loop).name);
        }
    }
}

/// Operands are kept for an iteration of the serial loops: these stand outside of what lies in registers.
bool serial_loops_stand_outside(NestWork &work, const std::set<std::string> &axes) {
    bool in_registers = false;
    for (const NestLoop &loop : work.nest.loops) {
        const tile::Leaf &leaf = work.nest.leaf(loop);
        if (!axes.count(work.nest.axes[loop.axis].name) || leaf.extent == Extent(1)) {
            continue;
        }
        if (in_registers && leaf.level == Level::loop) {
            return false;
        }
        in_registers = in_registers || leaf.level != Level::loop;
    }
    return true;
}

/// Blocks of a cluster exchange one value each.
void check_cluster(const NestWork &work, const Stage &s, const std::vector<tile::Combine::Group> &groups, int blocks, bool many_values) {
    if (blocks == 1) {
        return;
    }
    const bool whole_block = groups.size() == 1 && groups[0].size == work.nest.threads && groups[0].size % 32 == 0 && groups[0].size > 32;
    if (blocks != work.nest.cluster || !whole_block || many_values) {
        user_error("kernel {}: stage '{}' is reduced over some blocks of a cluster, some threads of a block or several values at once; "
                   "spread one row over all threads (two warps or more) of all blocks of the cluster", work.kernel.name, s.name());
    }
}

/// The outermost serial loop over the terms, where the schedule asks for sums of each of its steps; else empty.
std::string step_summed_apart(const NestWork &work, const Member &member, Combiner combiner) {
    const Stage &s = work.stage(member.stage);
    const ScheduleFlag *flag = scheduled_stage(work.schedule, s).find_flag("sum_apart");
    if (!flag) {
        return {};
    }
    std::vector<std::string> loops;
    for (const NestLoop &loop : work.nest.loops) {
        if (member.reduction_axes.count(work.nest.axes[loop.axis].name)) {
            loops.push_back(work.nest.leaf(loop).name);
        }
    }
    if (combiner != Combiner::sum || loops.size() < 2) {
        schedule_error(flag->directive.location, s.name(), "a step of its outermost loop is no sum of several terms", "split a reduction axis of a sum, or remove sum_apart()");
    }
    return loops.front();
}

/// `part` sums the terms of one step: the piece that adds what the steps come to up in `whole`. One sum grows by fewer terms then, and rounds less.
Piece add_up_steps(NestWork &work, const Member &member, Piece part, const std::string &part_name, const tile::Buffer &whole, const std::string &combiner, const std::string &step) {
    const auto leaves = work.register_leaves(member.axes);
    const std::vector<Expr> place = place_in(leaves);
    tile::Buffer one_step = whole;
    one_step.name = part_name;
    Piece total;
    total.name = whole.name;
    total.loops = work.loops_of(member.axes);
    total.loops.insert(step);
    total.reduces = {step};
    total.begin = [=](const std::set<std::string> &around) {
        return over(leaves, around, {tile::Statement{tile::Store{whole.name, place, identity(Combiner::sum, whole.types)}}});
    };
    total.body = [=] { return tile::Block{tile::Statement{tile::Fold{whole.name, combiner, place, {tile::read(one_step, place)}}}}; };
    total.end = std::exchange(part.end, nullptr);
    part.name = part_name;
    part.reduces.erase(step);
    total.needs = {work.add_piece(std::move(part))};
    return total;
}

}  // namespace

void lower_reduction(NestWork &work, const Member &member, const Fold &fold) {
    const Stage &s = work.stage(member.stage);
    const std::vector<Halide::Type> types = s.func.types();
    const auto leaves = work.register_leaves(member.axes);
    const std::vector<Expr> place = place_in(leaves);
    check_loops(work, member, s);
    tile::CombinerDefinition definition = combiner_definition(work.unique(s.name() + "_combine"), fold.combiner, types);
    tile::Buffer buffer = work.register_buffer(s.name(), types, leaves);
    if (types.size() > 1) {
        work.launch.find_buffer(buffer.name)->combiner = buffer.combiner = definition.name;
    }
    work.stage_values.keep(member.stage, buffer, place);
    const std::string step = step_summed_apart(work, member, fold.combiner);
    const std::string into = step.empty() ? buffer.name : work.register_buffer(s.name() + "_step", types, leaves).name;
    std::vector<Expr> initial, terms;
    for (const Expr &e : fold.initial) {
        initial.push_back(work.stage_values.evaluate(e, member.environment, member.stage));
    }
    for (const Expr &e : fold.terms) {
        terms.push_back(work.stage_values.evaluate(e, member.environment, member.stage, &buffer));
    }
    work.launch.combiners.push_back(definition);
    const bool general = fold.combiner == Combiner::general;
    const std::set<std::string> all = joined(member.axes, member.reduction_axes);
    const Form form = classify(s);
    const bool has_tile = !general && (form == Form::contraction || form == Form::window) && !work.register_leaves(member.axes).empty() &&
                          serial_loops_stand_outside(work, all);
    if (form == Form::window) {
        for (Expr &term : terms) {
            term = assume_conditions(term, work.nest.ranges);
        }
        stage_reads(work, s, terms);
    }
    const bool all_kept = has_tile && keep_operands(work, member, terms);
    require_staged(work, s);
    // Terms that one thread holds in registers are folded together first, which costs less than one by one.
    const std::set<std::string> held = work.leaves_at(member.reduction_axes, {Level::unroll, Level::vector});
    std::optional<std::vector<Expr>> together;
    if (!held.empty()) {
        together = fold_registers(work, member, fold.combiner, terms, held);
        terms = together ? *together : terms;
    }
    Piece piece;
    piece.name = s.name();
    piece.loops = work.loops_of(all);
    piece.reduces = work.loops_of(member.reduction_axes);
    if (together) {
        for (const std::string &leaf : held) {
            piece.loops.erase(leaf);
            piece.reduces.erase(leaf);
        }
    }
    std::vector<Expr> read = terms;
    read.insert(read.end(), initial.begin(), initial.end());
    piece.needs = work.needs_of(read);
    const std::vector<Expr> start = general ? initial : definition.identity;
    piece.begin = [=](const std::set<std::string> &around) { return over(leaves, around, {tile::Statement{tile::Store{into, place, start}}}); };
    // Operands outside of their tensors are zeros in registers, and sums of elements outside of the result are never stored.
    const bool is_product = fold.combiner == Combiner::sum && terms.size() == 1 && terms[0].as<hi::Mul>();
    const std::vector<Expr> guards = together || (all_kept && is_product) ? std::vector<Expr>() : work.guards_of(all_kept ? member.reduction_axes : all);
    piece.body = [=] {
        tile::Statement step = general ? tile::Statement{tile::Store{into, place, terms}}
                                       : tile::Statement{tile::Fold{into, definition.name, place, terms}};
        return guarded(guards, {step});
    };
    const std::vector<tile::Combine::Group> groups = work.thread_groups(member.reduction_axes);
    if (!groups.empty() && (general || fold.combiner == Combiner::last)) {
        user_error("kernel {}: stage '{}' folds in order and its reduction is spread over threads; keep its reduction axes serial", work.kernel.name, s.name());
    }
    const int blocks = work.cluster_blocks(member.reduction_axes);
    check_cluster(work, s, groups, blocks, !work.leaves_at(member.axes, {Level::unroll, Level::vector}).empty());
    const std::int64_t at_once = leaves.empty() || types.size() > 1 ? 1 : leaves.back()->extent.value();
    const bool has_initial = !general && !is_identity(fold.initial, definition.identity);
    const bool split = !work.leaves_at(member.reduction_axes, {Level::grid}).empty();
    piece.end = [=, &work](const std::set<std::string> &around) {
        tile::Block block;
        if (!groups.empty() || blocks > 1) {
            block.push_back({tile::Combine{buffer.name, definition.name, place, groups, work.exchange_buffer(buffer, groups, at_once), blocks,
                                           blocks > 1 ? work.cluster_buffer(buffer, blocks) : ""}});
        }
        if (has_initial && !split) {
            block.push_back({tile::Fold{buffer.name, definition.name, place, initial}});
        }
        return over(leaves, around, block);
    };
    const int index = work.add_piece(step.empty() ? piece : add_up_steps(work, member, piece, into, buffer, definition.name, step));
    work.piece_of[buffer.name] = index;
    std::vector<Expr> values;
    for (std::size_t i = 0; i < types.size(); ++i) {
        values.push_back(tile::read(buffer, place, static_cast<int>(i)));
    }
    split ? add_split(work, member, fold, definition, values) : work.add_stores(member, values);
    if (split) {
        work.split_values.insert(buffer.name);
    }
}

}  // namespace tilewright
