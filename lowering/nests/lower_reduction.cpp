#include "lowering/nests/lower_members.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/operand_registers.h"
#include "lowering/nests/register_extremes.h"
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
        if (reducing && member.axes.count(axis) && work.nest.leaf(loop).level == Level::loop &&
            !(work.nest.leaf(loop).extent == Extent(1))) {
            user_error(
                "kernel {}: stage '{}' is reduced over a loop that stands outside of its own loop '{}', so that its partial results would "
                "not "
                "fit in registers; unroll '{}' or move it outside",
                work.kernel.name, s.name(), work.nest.leaf(loop).name, work.nest.leaf(loop).name);
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
        user_error(
            "kernel {}: stage '{}' is reduced over some blocks of a cluster, some threads of a block or several values at once; "
            "spread one row over all threads (two warps or more) of all blocks of the cluster",
            work.kernel.name, s.name());
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
        schedule_error(flag->directive.location, s.name(), "a step of its outermost loop is no sum of several terms",
                       "split a reduction axis of a sum, or remove sum_apart()");
    }
    return loops.front();
}

/// `part` sums the terms of one step: the piece that adds what the steps come to up in `whole`. One sum grows by fewer terms then, and
/// rounds less.
Piece add_up_steps(NestWork &work, const Member &member, Piece part, const std::string &part_name, const tile::Buffer &whole,
                   const std::string &combiner, const std::string &step) {
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

class ReductionLowering {
public:
    ReductionLowering(NestWork &work, const Member &member, const Fold &fold)
        : work_(work),
          member_(member),
          fold_(fold),
          stage_(work.stage(member.stage)),
          is_general_(fold.combiner == Combiner::general),
          all_(joined(member.axes, member.reduction_axes)),
          leaves_(work.register_leaves(member.axes)),
          place_(place_in(leaves_)) {}

    void run() {
        check_loops(work_, member_, stage_);
        add_accumulator();
        evaluate();
        stage_operands();
        fold_held_terms();
        const Piece terms = piece();
        work_.piece_of[buffer_.name] =
            work_.add_piece(step_.empty() ? terms : add_up_steps(work_, member_, terms, into_, buffer_, definition_.name, step_));
        store();
    }

private:
    void add_accumulator() {
        const std::vector<Halide::Type> types = stage_.func.types();
        definition_ = combiner_definition(work_.unique(stage_.name() + "_combine"), fold_.combiner, types);
        buffer_ = work_.register_buffer(stage_.name(), types, leaves_);
        if (types.size() > 1) {
            work_.launch.find_buffer(buffer_.name)->combiner = buffer_.combiner = definition_.name;
        }
        work_.stage_values.keep(member_.stage, buffer_, place_);
        step_ = step_summed_apart(work_, member_, fold_.combiner);
        into_ = step_.empty() ? buffer_.name : work_.register_buffer(stage_.name() + "_step", types, leaves_).name;
    }

    void evaluate() {
        for (const Expr &e : fold_.initial) {
            initial_.push_back(work_.stage_values.evaluate(e, member_.environment, member_.stage));
        }
        for (const Expr &e : fold_.terms) {
            terms_.push_back(work_.stage_values.evaluate(e, member_.environment, member_.stage, &buffer_));
        }
        work_.launch.combiners.push_back(definition_);
    }

    void stage_operands() {
        const Form form = classify(stage_);
        const bool is_product = form == Form::contraction || form == Form::window;
        const bool has_tile = !is_general_ && is_product && !leaves_.empty() && serial_loops_stand_outside(work_, all_);
        if (form == Form::window) {
            for (Expr &term : terms_) {
                term = assume_conditions(term, work_.nest.ranges);
            }
            stage_reads(work_, stage_, terms_);
        }
        all_kept_ = has_tile && keep_operands(work_, member_, terms_);
        require_staged(work_, stage_);
    }

    /// Terms that one thread holds in registers are folded together first, which costs less than one by one.
    void fold_held_terms() {
        const std::set<std::string> held = work_.leaves_at(member_.reduction_axes, {Level::unroll, Level::vector});
        auto together = held.empty() ? std::nullopt : fold_registers(work_, member_, fold_.combiner, terms_, held);
        if (!together && !held.empty()) {
            together = fold_extremes(work_, member_, fold_.combiner, terms_, held);
        }
        if (together) {
            terms_ = *together;
            folded_ = held;
        }
    }

    Piece piece() {
        Piece piece;
        piece.name = stage_.name();
        piece.loops = work_.loops_of(all_);
        piece.reduces = work_.loops_of(member_.reduction_axes);
        for (const std::string &leaf : folded_) {
            piece.loops.erase(leaf);
            piece.reduces.erase(leaf);
        }
        std::vector<Expr> read = terms_;
        read.insert(read.end(), initial_.begin(), initial_.end());
        piece.needs = work_.needs_of(read);
        const tile::Store start{into_, place_, is_general_ ? initial_ : definition_.identity};
        piece.begin = [leaves = leaves_, start](const std::set<std::string> &around) {
            return over(leaves, around, {tile::Statement{start}});
        };
        const tile::Statement step = is_general_ ? tile::Statement{tile::Store{into_, place_, terms_}}
                                                 : tile::Statement{tile::Fold{into_, definition_.name, place_, terms_}};
        piece.body = [guards = guards(), step] { return guarded(guards, {step}); };
        piece.end = end();
        return piece;
    }

    /// Operands outside of their tensors are zeros in registers, and sums of elements outside of the result are never stored.
    std::vector<Expr> guards() const {
        const bool is_product = fold_.combiner == Combiner::sum && terms_.size() == 1 && terms_[0].as<hi::Mul>();
        const bool needs_none = !folded_.empty() || (all_kept_ && is_product);
        return needs_none ? std::vector<Expr>() : work_.guards_of(all_kept_ ? member_.reduction_axes : all_);
    }

    /// After the loops threads and blocks join their parts, and the value that the fold starts from comes in.
    std::function<tile::Block(const std::set<std::string> &)> end() {
        const std::vector<tile::Combine::Group> groups = work_.thread_groups(member_.reduction_axes);
        if (!groups.empty() && (is_general_ || fold_.combiner == Combiner::last)) {
            user_error("kernel {}: stage '{}' folds in order and its reduction is spread over threads; keep its reduction axes serial",
                       work_.kernel.name, stage_.name());
        }
        const int blocks = work_.cluster_blocks(member_.reduction_axes);
        check_cluster(work_, stage_, groups, blocks, !work_.leaves_at(member_.axes, {Level::unroll, Level::vector}).empty());
        const bool has_initial = !is_general_ && !is_split() && !is_identity(fold_.initial, definition_.identity);
        const tile::Fold start{buffer_.name, definition_.name, place_, initial_};
        return [=, &work = work_, buffer = buffer_, leaves = leaves_](const std::set<std::string> &around) {
            tile::Block block;
            if (!groups.empty() || blocks > 1) {
                const std::int64_t at_once = leaves.empty() || buffer.types.size() > 1 ? 1 : leaves.back()->extent.value();
                block.push_back(
                    {tile::Combine{buffer.name, start.combiner, start.place, groups, work.exchange_buffer(buffer, groups, at_once), blocks,
                                   blocks > 1 ? work.cluster_buffer(buffer, blocks) : ""}});
            }
            if (has_initial) {
                block.push_back({start});
            }
            return over(leaves, around, block);
        };
    }

    bool is_split() const { return !work_.leaves_at(member_.reduction_axes, {Level::grid}).empty(); }

    void store() {
        std::vector<Expr> values;
        for (std::size_t i = 0; i < buffer_.types.size(); ++i) {
            values.push_back(tile::read(buffer_, place_, static_cast<int>(i)));
        }
        if (is_split()) {
            add_split(work_, member_, fold_, definition_, values);
            work_.split_values.insert(buffer_.name);
        } else {
            work_.add_stores(member_, values);
        }
    }

    NestWork &work_;
    const Member &member_;
    const Fold &fold_;
    const Stage &stage_;
    const bool is_general_;
    const std::set<std::string> all_;
    const std::vector<const tile::Leaf *> leaves_;
    const std::vector<Expr> place_;
    tile::CombinerDefinition definition_;
    tile::Buffer buffer_;
    std::string step_;  ///< the loop each of whose steps is summed apart; empty where none is
    std::string into_;  ///< the buffer that terms are folded into: `buffer_`, or a step's own
    std::vector<Expr> initial_, terms_;
    bool all_kept_ = false;         ///< every operand is held in registers
    std::set<std::string> folded_;  ///< leaves whose terms are folded in registers
};

}  // namespace

void lower_reduction(NestWork &work, const Member &member, const Fold &fold) { ReductionLowering(work, member, fold).run(); }

}  // namespace tilewright
