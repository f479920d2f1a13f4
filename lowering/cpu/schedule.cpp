#include "lowering/cpu/schedule.h"

#include <algorithm>

#include "dsl/error.h"
#include "lowering/cpu/tile_bounds.h"

namespace tilewright {

using Halide::Func;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

/// One definition of a Func (the pure one, or the update) and the loops it has.
class NestEditor {
public:
    NestEditor(const ScheduledStage &scheduled, Halide::Stage stage, bool with_reductions, bool is_tile = false)
        : scheduled_(scheduled), stage_(std::move(stage)), is_tile_(is_tile) {
        for (const auto &dim : stage_.get_schedule().dims()) {
            dims_.push_back(dim.var);
        }
        exists_.assign(scheduled.axes.size(), false);
        for (std::size_t i = 0; i < scheduled.axes.size(); i++) {
            const LoopAxis &axis = scheduled.axes[i];
            // Reduction loops are variables of the domain as they are; only loops over the value are split and fused here.
            if (axis.reduction ? with_reductions && axis.is_loop : axis.origin == LoopAxis::Origin::root) {
                exists_[i] = std::find(dims_.begin(), dims_.end(), axis.name) != dims_.end();
            }
        }
    }

    void run() {
        make_loops();
        order_loops();
        bind_loops();
    }

    bool has(int axis) const { return exists_[axis]; }

private:
    VarOrRVar loop(int index) const {
        const LoopAxis &axis = scheduled_.axes[index];
        return axis.reduction ? VarOrRVar(RVar(axis.name)) : VarOrRVar(Var(axis.name));
    }

    void make_loops() {
        for (std::size_t i = 0; i < scheduled_.axes.size(); i++) {
            const LoopAxis &axis = scheduled_.axes[i];
            const int index = static_cast<int>(i);
            if (!axis.reduction && axis.origin == LoopAxis::Origin::split_outer && exists_[axis.parent]) {
                const int inner = scheduled_.axes[axis.parent].children[1];
                stage_.split(loop(axis.parent), loop(index), loop(inner), static_cast<int>(axis.factor),
                             TailStrategy::GuardWithIf);  // never beyond an extent
                exists_[axis.parent] = false;
                exists_[i] = exists_[inner] = true;
            } else if (!axis.reduction && axis.origin == LoopAxis::Origin::fused && exists_[axis.parent] && exists_[axis.second_parent]) {
                stage_.fuse(loop(axis.second_parent), loop(axis.parent), loop(index));
                exists_[axis.parent] = exists_[axis.second_parent] = false;
                exists_[i] = true;
            }
        }
    }

    void order_loops() {
        std::vector<VarOrRVar> innermost_first;
        for (auto index = scheduled_.loop_order.rbegin(); index != scheduled_.loop_order.rend(); ++index) {
            if (exists_[*index]) {
                innermost_first.push_back(loop(*index));
            }
        }
        if (innermost_first.size() > 1) {
            stage_.reorder(innermost_first);
        }
    }

    void bind_loops() {
        for (std::size_t i = 0; i < scheduled_.axes.size(); i++) {
            if (!exists_[i]) {
                continue;
            }
            switch (scheduled_.axes[i].binding) {
                case Binding::parallel:
                    if (!is_tile_) {
                        stage_.parallel(loop(static_cast<int>(i)));
                    }
                    break;
                case Binding::vectorized:
                    stage_.vectorize(loop(static_cast<int>(i)));
                    break;
                case Binding::unrolled:
                    stage_.unroll(loop(static_cast<int>(i)));
                    break;
                default:
                    break;
            }
        }
    }

    const ScheduledStage &scheduled_;
    Halide::Stage stage_;
    bool is_tile_;  ///< computed inside the loops that the schedule names first, which have one iteration here
    std::vector<std::string> dims_;
    std::vector<bool> exists_;
};

class Scheduler {
public:
    Scheduler(const ScheduledKernel &scheduled, HalideKernel &built) : scheduled_(scheduled), built_(built) {}

    void run() {
        for (const ScheduledStage &stage : scheduled_.stages) {
            if (is_packed(stage)) {
                continue;
            }
            const HalideStage &made = built_.stages.at(stage.name);
            if (is_inlined(stage, made)) {
                continue;
            }
            shape(stage, made);
            place(stage, made.func, is_output(stage, made));
            for (const Func &companion : made.companions) {
                shape(stage, HalideStage{companion});
                place(stage, companion, false);
            }
            if (made.padded) {
                shape_padded(stage, made);
            }
            if (made.centre) {
                order_plainly(*made.centre);
                place(stage, *made.centre, false);
            }
        }
        for (Func &output : built_.outputs) {
            if (built_.results.count(output.name())) {
                order_plainly(output);
            }
        }
    }

private:
    bool is_packed(const ScheduledStage &stage) const {
        return std::any_of(built_.packed.begin(), built_.packed.end(), [&](const auto &packed) { return packed->copy() == stage.name; });
    }

    bool is_output(const ScheduledStage &stage, const HalideStage &made) const {
        return built_.copied.count(stage.name) ||
               std::any_of(built_.outputs.begin(), built_.outputs.end(), [&](const Func &f) { return f.name() == made.func.name(); });
    }

    bool is_inlined(const ScheduledStage &stage, const HalideStage &made) const {
        const bool one_expression = !made.func.has_update_definition() && !made.func.is_extern();
        if (is_output(stage, made) || !one_expression) {
            return false;
        }
        const bool is_left_open =
            stage.compute == ComputeLevel::unspecified && stage.partial_of.empty() && stage.copy_of.empty() && !made.is_fold_tree;
        return stage.compute == ComputeLevel::inlined || is_left_open;
    }

    /// Last argument innermost, in memory too.
    static void order_plainly(Func func) {
        std::vector<Var> innermost_first = func.args();
        std::reverse(innermost_first.begin(), innermost_first.end());
        if (innermost_first.size() > 1) {
            func.reorder(std::vector<VarOrRVar>(innermost_first.begin(), innermost_first.end()));
            func.reorder_storage(innermost_first);
        }
    }

    void shape(const ScheduledStage &stage, const HalideStage &made) {
        Func func = made.func;
        order_plainly(func);
        if (!stage.copy_of.empty()) {
            order_storage_by_loops(stage, func);
        }
        if (func.is_extern()) {
            return;
        }
        NestEditor(stage, Halide::Stage(func), false).run();
        if (func.has_update_definition()) {
            func.update(0).unscheduled();  // its loops may well be right as they are
            if (stage.find_flag("atomic")) {
                func.update(0).atomic(true);
            }
            NestEditor(stage, func.update(0), true).run();
        }
        if (made.accumulator) {
            shape_accumulator(stage, made);
        } else {
            bound(func, made.tile);
            if (!made.tile.empty() && stage.copy_of.empty()) {
                order_storage_by_lanes(stage, func);
            }
        }
    }

    static void shape_accumulator(const ScheduledStage &stage, const HalideStage &made) {
        Func tile = *made.accumulator;
        order_plainly(tile);
        NestEditor(stage, Halide::Stage(tile), false, true).run();
        NestEditor(stage, tile.update(0), true, true).run();
        bound(tile, made.tile);
        order_storage_by_lanes(stage, tile);
        const int level = loop_outside_reductions(stage);
        if (level >= 0) {
            tile.compute_at(Halide::LoopLevel(made.func, Var(stage.axes[stage.loop_order[level]].name)));
        } else {
            tile.compute_root();
        }
    }

    /// Wide along its last axis; whole, unless what it holds the border of is computed piece by piece: then in the same place.
    void shape_padded(const ScheduledStage &stage, const HalideStage &made) const {
        Func padded = *made.padded;
        order_plainly(padded);
        const std::vector<Var> arguments = padded.args();
        const Var outer, inner;
        padded.split(arguments.back(), outer, inner, 16, TailStrategy::GuardWithIf).vectorize(inner);
        if (const ScheduledStage *source = piecewise_source(made.padded_reads)) {
            place(*source, padded, false);
            return;
        }
        padded.compute_root();
        const ScheduledStage *reader = stage.compute == ComputeLevel::at ? scheduled_.find(stage.at_stage) : &stage;
        if (reader && !reader->bound_to(Binding::parallel).empty() && arguments.size() > 2) {
            padded.parallel(arguments[1]);
        }
    }

    /// Of the stages that it depends on, directly or through inlined ones, the one that is computed in the innermost place.
    const ScheduledStage *piecewise_source(const std::vector<std::string> &names) const {
        const ScheduledStage *deepest = nullptr;
        int depth = -1;
        for (const std::string &name : names) {
            const ScheduledStage *source = scheduled_.find(name);
            if (!source || source->compute != ComputeLevel::at) {
                continue;
            }
            const ScheduledStage &place = *scheduled_.find(source->at_stage);
            const int at = position_of(place, place.find_axis(source->at_axis));
            if (at > depth) {
                depth = at;
                deepest = source;
            }
        }
        return deepest;
    }

    /// Loops and memory of a tile have constant extents, so that it can live in registers.
    static void bound(Func func, const std::map<std::string, std::int64_t> &tile) {
        for (const auto &[axis, extent] : tile) {
            func.bound_extent(Var(axis), static_cast<int>(extent));
        }
    }

    /// A tile in registers: vectors are contiguous whichever axis they run along.
    static void order_storage_by_lanes(const ScheduledStage &stage, Func func) {
        const std::vector<int> lanes = stage.bound_to(Binding::vectorized);
        if (lanes.empty() || stage.axes[lanes[0]].reduction) {
            return;
        }
        const std::string wide = stage.axes[root_of(stage, lanes[0])].name;
        std::vector<Var> innermost_first{Var(wide)};
        const std::vector<Var> arguments = func.args();
        for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
            if (argument->name() != wide) {
                innermost_first.push_back(*argument);
            }
        }
        if (innermost_first.size() > 1) {
            func.reorder_storage(innermost_first);
        }
    }

    static int root_of(const ScheduledStage &stage, int axis) {
        while (stage.axes[axis].parent >= 0) {
            axis = stage.axes[axis].parent;
        }
        return axis;
    }

    /// A staged copy may transpose: it lies in memory as its reader wants it, which the order of its loops says.
    static void order_storage_by_loops(const ScheduledStage &stage, Func func) {
        std::vector<Var> innermost_first;
        for (auto index = stage.loop_order.rbegin(); index != stage.loop_order.rend(); ++index) {
            const int root = *index;
            if (stage.axes[root].binding == Binding::vectorized) {
                continue;  // what one instruction moves says nothing of the order
            }
            const Var variable(stage.axes[root_of(stage, root)].name);
            const bool known =
                std::any_of(innermost_first.begin(), innermost_first.end(), [&](const Var &v) { return v.name() == variable.name(); });
            if (!known) {
                innermost_first.push_back(variable);
            }
        }
        if (innermost_first.size() > 1) {
            func.reorder_storage(innermost_first);
        }
    }

    void place(const ScheduledStage &stage, Func func, bool is_stored) const {
        if (stage.compute == ComputeLevel::at && (func.is_extern() || built_.stages.at(stage.at_stage).func.is_extern())) {
            schedule_error(stage.at_location, stage.name, "a sort takes and gives whole tensors: it stands in no loop and has none",
                           "use compute_root()");
        }
        if (is_stored || stage.compute != ComputeLevel::at) {
            func.compute_root();
        } else {
            const HalideStage &reader = built_.stages.at(stage.at_stage);
            const ScheduledStage &reader_scheduled = *scheduled_.find(stage.at_stage);
            const int axis = reader_scheduled.find_axis(stage.at_axis);
            const bool is_reduction = reader_scheduled.axes[axis].reduction;
            // The loops of a tile's accumulation are the accumulator's.
            const bool inside_tile = reader.accumulator && position_of(reader_scheduled, axis) > loop_outside_reductions(reader_scheduled);
            const Func place = inside_tile ? *reader.accumulator : reader.func;
            const VarOrRVar loop = is_reduction ? VarOrRVar(RVar(stage.at_axis)) : VarOrRVar(Var(stage.at_axis));
            func.compute_at(Halide::LoopLevel(place, loop));
        }
        if (stage.store_in) {
            func.store_in(*stage.store_in == MemorySpace::global ? Halide::MemoryType::Heap : Halide::MemoryType::Stack);
        }
    }

    static int position_of(const ScheduledStage &stage, int axis) {
        return static_cast<int>(std::find(stage.loop_order.begin(), stage.loop_order.end(), axis) - stage.loop_order.begin());
    }

    const ScheduledKernel &scheduled_;
    HalideKernel &built_;
};

/// Vectorised loops one lane at a time: lanes beyond an extent read zeros, which a check of divisors would take for the program's.
ScheduledKernel without_vectors(ScheduledKernel scheduled) {
    for (ScheduledStage &stage : scheduled.stages) {
        for (LoopAxis &axis : stage.axes) {
            axis.binding = axis.binding == Binding::vectorized ? Binding::serial : axis.binding;
        }
    }
    return scheduled;
}

}  // namespace

void apply_schedule(const ScheduledKernel &scheduled, HalideKernel &built) {
    if (built.checks_divisors) {
        const ScheduledKernel serial = without_vectors(scheduled);
        Scheduler(serial, built).run();
    } else {
        Scheduler(scheduled, built).run();
    }
}

}  // namespace tilewright
