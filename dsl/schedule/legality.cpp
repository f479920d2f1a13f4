#include "dsl/schedule/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tilewright {

namespace {

class LegalityCheck {
public:
    LegalityCheck(const KernelAxes &kernel, const ScheduledKernel &scheduled, ScheduleTarget target)
        : kernel_(kernel), scheduled_(scheduled), target_(target) {}

    void run() {
        for (const ScheduledStage &stage : scheduled_.stages) {
            if (!stage.is_edited) {
                continue;
            }
            check_inline(stage);
            check_place(stage);
            check_companion(stage);
            check_copy(stage);
            check_concurrency(stage);
            check_nesting(stage);
            check_flags(stage);
            check_left_open(stage);
        }
    }

private:
    [[noreturn]] static void fail(const ScheduledStage &stage, const SourceLocation &location, const std::string &cause,
                                  const std::string &repair) {
        schedule_error(location, stage.name, cause, repair);
    }
    [[noreturn]] static void fail(const ScheduleFlag &flag, const std::string &cause, const std::string &repair) {
        schedule_error(flag.directive.location, flag.directive.to_string(), cause, repair);
    }

    void check_inline(const ScheduledStage &stage) const {
        if (stage.compute != ComputeLevel::inlined) {
            return;
        }
        const StageAxes *axes = kernel_.find(stage.name);
        if (axes && axes->is_output) {
            fail(stage, stage.at_location, fmt::format("stage '{}' is an output of the kernel and cannot be inlined", stage.name),
                 "remove compute_inline");
        }
        if (!axes || !axes->is_inlinable) {
            fail(stage, stage.at_location, fmt::format("stage '{}' has an update and cannot be inlined", stage.name),
                 "use compute_at or compute_root");
        }
        if (shapes_loops(stage) || stage.store_in || !stage.flags.empty()) {
            fail(stage, stage.at_location, fmt::format("stage '{}' is inlined and has other directives", stage.name),
                 "an inlined stage has no loops and no memory: remove compute_inline, or the others");
        }
    }

    static bool shapes_loops(const ScheduledStage &stage) {
        return std::any_of(stage.axes.begin(), stage.axes.end(),
                           [](const LoopAxis &axis) { return axis.origin != LoopAxis::Origin::root || axis.binding != Binding::serial; });
    }

    /// A stage of one expression that no directive gives a place is computed wherever it is read, and has nothing to edit.
    bool is_left_open(const ScheduledStage &stage) const {
        const StageAxes *axes = kernel_.find(stage.name);
        return stage.compute == ComputeLevel::unspecified && axes && !axes->is_output && axes->is_inlinable;
    }

    void check_left_open(const ScheduledStage &stage) const {
        if (!is_left_open(stage)) {
            return;
        }
        const std::string cause =
            fmt::format("stage '{}' is computed wherever it is read: it has no loops and no memory of its own", stage.name);
        const std::string repair = "give it compute_at(stage, axis) or compute_root(), or remove this";
        for (const ScheduleFlag &flag : stage.flags) {
            if (flag.directive.name != "compute_with" && flag.directive.name != "engine") {
                fail(flag, cause, repair);
            }
        }
        const bool has_companion = stage.find_flag("compute_with");
        if (!has_companion && (shapes_loops(stage) || stage.store_in)) {
            fail(stage, stage.at_location, cause, repair);
        }
    }

    void check_place(const ScheduledStage &stage) const {
        if (stage.compute != ComputeLevel::at) {
            if (stage.store_in && *stage.store_in != MemorySpace::global && !is_left_open(stage)) {
                fail(stage, stage.at_location,
                     fmt::format("stage '{}' is computed at the root and stored in {}", stage.name, name(*stage.store_in)),
                     "what is computed at the root lies in global memory: use compute_at, or store_in(global)");
            }
            return;
        }
        if (stage.store_in == MemorySpace::global && target_ == ScheduleTarget::cuda) {
            fail(stage, stage.at_location, fmt::format("stage '{}' is computed in a launch of others and stored in global", stage.name),
                 "what a loop of a launch computes lies in registers or shared memory: use compute_root, or another store_in");
        }
        const ScheduledStage *place = scheduled_.find(stage.at_stage);
        if (!place) {
            fail(stage, stage.at_location, fmt::format("kernel '{}' has no stage '{}'", scheduled_.kernel, stage.at_stage),
                 "name a stage that reads this one");
        }
        if (!is_read_by(stage.name, stage.at_stage)) {
            fail(stage, stage.at_location, fmt::format("stage '{}' does not depend on '{}'", stage.at_stage, stage.name),
                 fmt::format("compute '{}' at a loop of a stage that reads it", stage.name));
        }
        if (place->compute == ComputeLevel::inlined) {
            fail(stage, stage.at_location, fmt::format("stage '{}' is inlined and has no loops", stage.at_stage),
                 "name the stage that it is inlined into");
        }
        if (loop_of(stage, stage.at_location, *place, stage.at_axis).binding == Binding::vectorized) {
            fail(stage, stage.at_location,
                 fmt::format("loop '{}' of stage '{}' is vectorized: nothing can be computed inside it", stage.at_axis, stage.at_stage),
                 "name a loop outside it");
        }
    }

    /// What compute_with names.
    void check_companion(const ScheduledStage &stage) const {
        const ScheduleFlag *flag = stage.find_flag("compute_with");
        if (!flag) {
            return;
        }
        const ScheduledStage *other = scheduled_.find(flag->word(0));
        if (!other || other == &stage) {
            fail(*flag,
                 other ? "the stage cannot share loops with itself"
                       : fmt::format("kernel '{}' has no stage '{}'", scheduled_.kernel, flag->word(0)),
                 "name another stage");
        }
        if (other->compute == ComputeLevel::inlined) {
            fail(*flag, fmt::format("stage '{}' is inlined and has no loops", other->name), "name a stage that has loops");
        }
        loop_of(stage, flag->directive.location, *other, flag->word(1));
    }

    static const LoopAxis &loop_of(const ScheduledStage &stage, const SourceLocation &location, const ScheduledStage &other,
                                   const std::string &name) {
        const int axis = other.find_axis(name);
        if (axis < 0 || !other.axes[axis].is_loop) {
            std::string loops;
            for (int index : other.loop_order) {
                loops += (loops.empty() ? "" : " ") + other.axes[index].name;
            }
            fail(stage, location, fmt::format("stage '{}' has no loop '{}'", other.name, name),
                 fmt::format("its loops are {}", loops.empty() ? "none" : loops));
        }
        return other.axes[axis];
    }

    /// Whether `reader` depends on the stage, directly or through others.
    bool is_read_by(const std::string &stage, const std::string &reader) const {
        std::set<std::string> seen;
        std::vector<std::string> pending{reader};
        while (!pending.empty()) {
            const std::string current = pending.back();
            pending.pop_back();
            if (!seen.insert(current).second) {
                continue;
            }
            for (const std::string &read : reads_of(current)) {
                if (read == stage) {
                    return true;
                }
                pending.push_back(read);
            }
        }
        return false;
    }

    /// What a stage reads, staged copies and partial stages included.
    std::vector<std::string> reads_of(const std::string &stage) const {
        std::vector<std::string> reads;
        const ScheduledStage *scheduled = scheduled_.find(stage);
        const std::string owner = scheduled && !scheduled->partial_of.empty() ? scheduled->partial_of : stage;
        if (const StageAxes *axes = kernel_.find(owner)) {
            reads = axes->reads;
        }
        if (scheduled && !scheduled->copy_of.empty()) {
            reads.push_back(scheduled->copy_of);
        }
        for (const ScheduledStage &other : scheduled_.stages) {
            if (other.copy_for == owner || (other.partial_of == stage && other.name != stage)) {
                reads.push_back(other.name);
            }
        }
        return reads;
    }

    /// Whether what the copy's reader computes in place has reads of the tensor: what other stages keep is read from there.
    bool meets_source(const ScheduledStage &copy) const {
        std::set<std::string> seen;
        std::vector<std::string> pending{copy.copy_for};
        while (!pending.empty()) {
            const StageAxes *axes = kernel_.find(pending.back());
            pending.pop_back();
            for (const std::string &read : axes ? axes->reads : std::vector<std::string>()) {
                if (read == copy.copy_of) {
                    return true;
                }
                const StageAxes *producer = kernel_.find(read);
                const ScheduledStage *scheduled = scheduled_.find(read);
                const bool is_kept = !producer || producer->is_input || !producer->is_inlinable || !scheduled ||
                                     scheduled->compute == ComputeLevel::at || scheduled->compute == ComputeLevel::root;
                if (!is_kept && seen.insert(read).second) {
                    pending.push_back(read);
                }
            }
        }
        return false;
    }

    void check_copy(const ScheduledStage &stage) const {
        if (!stage.copy_of.empty() && !meets_source(stage)) {
            fail(stage, stage.at_location,
                 fmt::format("stage '{}' reads '{}' only by way of stages that are computed apart", stage.copy_for, stage.copy_of),
                 "name the stage among them that reads it, or remove the copy");
        }
        for (const char *copy_only : {"async_copy", "bulk_copy"}) {
            const ScheduleFlag *flag = stage.find_flag(copy_only);
            if (flag && stage.copy_of.empty()) {
                fail(*flag, fmt::format("stage '{}' computes; only a staged copy can be made by a copy unit", stage.name),
                     "put it on the copy of what the stage reads: TENSOR.in(" + stage.name + ")");
            }
        }
        if (const ScheduleFlag *flag = stage.find_flag("async_copy"); flag && stage.find_flag("bulk_copy")) {
            fail(*flag, "a copy is made by cp.async or by the bulk copy unit, not by both", "remove async_copy or bulk_copy");
        }
        if (const ScheduleFlag *flag = stage.find_flag("multicast"); flag && !stage.find_flag("bulk_copy")) {
            fail(*flag, "only bulk copies can be multicast", "add bulk_copy()");
        }
        if (stage.find_flag("bulk_copy") && stage.store_in != MemorySpace::shared) {
            fail(*stage.find_flag("bulk_copy"), "the bulk copy unit writes shared memory", "add store_in(shared)");
        }
    }

    void check_concurrency(const ScheduledStage &stage) const {
        const bool is_atomic = stage.find_flag("atomic");
        for (const LoopAxis &axis : stage.axes) {
            if (!axis.reduction || !axis.is_loop || is_atomic) {
                continue;
            }
            const SourceLocation &place = axis.bound_at;
            const ScheduleFlag *across = stage.find_flag("reduce_across");
            if (axis.binding == Binding::block && across && across->word(0) == "cluster" && stage.find_flag("cluster")) {
                continue;
            }
            if (axis.binding == Binding::parallel || axis.binding == Binding::block) {
                fail(stage, place,
                     fmt::format("reduction axis '{}' of stage '{}' is bound to {}: its updates would race", axis.name, stage.name,
                                 name(axis.binding)),
                     axis.binding == Binding::block ? "use split_blocks, or cluster(x, y) with reduce_across(cluster), or add atomic()"
                                                    : "use rfactor, or add atomic()");
            }
            if ((axis.binding == Binding::thread || axis.binding == Binding::lane) && !across) {
                fail(stage, place,
                     fmt::format("reduction axis '{}' of stage '{}' is bound to {} and nothing combines the results", axis.name, stage.name,
                                 name(axis.binding)),
                     "add reduce_across(warp) or reduce_across(block)");
            }
            if (axis.binding == Binding::vectorized && target_ == ScheduleTarget::cpu) {
                fail(stage, place,
                     fmt::format("reduction axis '{}' of stage '{}' is vectorized: its updates would race", axis.name, stage.name),
                     "use rfactor and vectorize the new axis of " + stage.name + "_partial, or add atomic()");
            }
        }
    }

    static void check_nesting(const ScheduledStage &stage) {
        bool inside_threads = false;
        const LoopAxis *vectorized = nullptr;
        for (int index : stage.loop_order) {
            const LoopAxis &axis = stage.axes[index];
            if (axis.binding == Binding::block && inside_threads) {
                fail(stage, axis.bound_at, fmt::format("block loop '{}' of stage '{}' stands inside a thread loop", axis.name, stage.name),
                     "reorder: loops bound to blocks are outside those bound to threads");
            }
            if (axis.binding == Binding::vectorized && vectorized) {
                fail(stage, axis.bound_at,
                     fmt::format("loops '{}' and '{}' of stage '{}' are both vectorized", vectorized->name, axis.name, stage.name),
                     "vectorize one loop; unroll the other, or fuse them");
            }
            inside_threads |= axis.binding == Binding::thread || axis.binding == Binding::lane;
            vectorized = axis.binding == Binding::vectorized ? &axis : vectorized;
        }
    }

    void check_flags(const ScheduledStage &stage) const {
        const bool reduces = std::any_of(stage.axes.begin(), stage.axes.end(), [](const LoopAxis &axis) { return axis.reduction; });
        for (const char *reduction_only : {"reduce_across", "tensor_core", "stream", "sum_apart"}) {
            const ScheduleFlag *flag = stage.find_flag(reduction_only);
            if (flag && !reduces) {
                fail(*flag, fmt::format("stage '{}' reduces nothing", stage.name), "put it on the stage that reduces");
            }
        }
        if (const ScheduleFlag *flag = stage.find_flag("precision"); flag && !stage.find_flag("tensor_core")) {
            fail(*flag, "only the matrix unit rounds operands", "add tensor_core(m, n, k), or remove it");
        }
        for (const char *product_only : {"warpgroups", "producer_warps", "take_turns", "hide_exponentials"}) {
            const ScheduleFlag *flag = stage.find_flag(product_only);
            if (flag && !stage.find_flag("tensor_core")) {
                fail(*flag, fmt::format("{} divides the warps of a product on the matrix unit", flag->directive.name),
                     "add tensor_core(m, n, k)");
            }
        }
        if (const ScheduleFlag *flag = stage.find_flag("cluster");
            flag && (flag->number(0) > 16 || flag->number(1) > 16 || flag->number(0) * flag->number(1) > 16)) {
            fail(*flag, "a cluster has at most 16 blocks", "use 8 or fewer, which every GPU that has clusters allows");
        }
        if (const ScheduleFlag *flag = stage.find_flag("launch_bounds"); flag && flag->number(0) > 1024) {
            fail(*flag, "a block has at most 1024 threads", "give 1024 or fewer");
        }
    }

    const KernelAxes &kernel_;
    const ScheduledKernel &scheduled_;
    ScheduleTarget target_;
};

}  // namespace

void check_legal(const KernelAxes &kernel, const ScheduledKernel &scheduled, ScheduleTarget target) {
    LegalityCheck(kernel, scheduled, target).run();
}

}  // namespace tilewright
