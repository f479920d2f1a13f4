#include "lowering/cpu_schedules/default_schedule.h"

#include <algorithm>
#include <set>

#include "lowering/cpu_schedules/fold_schedule.h"
#include "lowering/cpu_schedules/product_schedule.h"
#include "lowering/cpu_schedules/schedule_draft.h"
#include "lowering/cpu_schedules/transpose_schedule.h"
#include "lowering/cpu_schedules/vector_axis.h"

namespace tilewright {

namespace {

class DefaultSchedule {
public:
    DefaultSchedule(const Kernel &kernel, const FixedInputs &fixed) : kernel_(kernel), fixed_(fixed), draft_(kernel) {}

    Directives run() {
        place_inlined();
        if (!flow_.kept.empty() && flow_.anchor) {
            schedule_anchor();
        }
        for (const KeptStage &kept : flow_.kept) {
            if (kept.stage != flow_.anchor && !done_.count(kept.stage->name())) {
                schedule_stage(kept);
            }
        }
        return std::move(draft_.builder.directives);
    }

private:
    void place_inlined() {
        for (const Stage &stage : kernel_.algorithm.stages) {
            if (!flow_.find(stage.name())) {
                draft_.at(stage).compute_inline();
            }
        }
    }

    static bool is_fold(const KeptStage &kept) {
        return kept.form == Form::reduction || kept.form == Form::contraction || kept.form == Form::window;
    }

    // ---- The anchor --------------------------------------------------------------------------------------------------------------

    void schedule_anchor() {
        const KeptStage &anchor = *flow_.find(flow_.anchor->name());
        draft_.anchor_loops = arguments_of(anchor);
        if (auto product = find_product(kernel_, flow_, fixed_)) {
            schedule_product(kernel_, flow_, *product, draft_.builder);
            done_.insert(product->product->stage->name());
            done_.insert(anchor.stage->name());
            draft_.usable_depth = product->usable_depth;
            for (int i = 0; i < anchor.stage->rank(); i++) {
                draft_.anchor_loops[i] = product->loop_of_axis[i];
            }
            return;
        }
        schedule_stage(anchor);
    }

    /// Whether some folds belong to one element of the anchor each.
    bool shares_columns(const KeptStage &anchor) const {
        return std::any_of(flow_.kept.begin(), flow_.kept.end(), [&](const KeptStage &kept) {
            return kept.stage != anchor.stage && kept.depth == anchor.stage->rank() && is_fold(kept);
        });
    }

    // ---- One stage ----------------------------------------------------------------------------------------------------------------

    void schedule_stage(const KeptStage &kept) {
        place(kept);
        switch (kept.form) {
            case Form::pointwise:
            case Form::gather:
                pointwise(kept);
                break;
            case Form::reduction:
            case Form::contraction:
            case Form::window:
                schedule_fold(draft_, kept);
                break;
            case Form::scan:
                schedule_scan(draft_, kept);
                break;
            case Form::scatter:
            case Form::sort:
                break;
        }
    }

    void place(const KeptStage &kept) {
        if (kept.is_output) {
            return;
        }
        const int depth = draft_.depth_of(kept);
        if (depth > 0) {
            draft_.at(*kept.stage).compute_at(flow_.anchor->name(), draft_.anchor_loops[depth - 1]);
        } else {
            draft_.at(*kept.stage).compute_root();
        }
    }

    /// Folds that the anchor needs element by element are best made wide along its last axis.
    bool holds_columns(const KeptStage &anchor) const {
        return std::any_of(flow_.kept.begin(), flow_.kept.end(), [&](const KeptStage &kept) {
            if (kept.stage == anchor.stage || kept.depth != anchor.stage->rank() || !is_fold(kept)) {
                return false;
            }
            const VectorAxis axis = choose_vector_axis(kernel_, kept, true);
            return !axis.name.empty() && !axis.is_reduction && axis.name == arguments_of(kept).back() &&
                   kept.anchor_axes.back() == anchor.stage->rank() - 1;
        });
    }

    /// The anchor in pieces of some columns, inside which its folds are computed for all of them at once.
    void anchor_columns(const KeptStage &anchor) {
        const std::string axis = arguments_of(anchor).back(), outer = axis + "o", piece = axis + "b", unrolled = axis + "u",
                          lane = axis + "i";
        const Extent &extent = anchor.stage->extents.back();
        const int lanes = lanes_for(extent, widest_bits(anchor));
        const std::optional<std::int64_t> constant = extent.constant();
        const std::int64_t columns = !constant || *constant >= 4 * lanes ? 4 * lanes : lanes;
        draft_.at(*anchor.stage).split(axis, outer, piece, columns).split(piece, unrolled, lane, lanes).vectorize(lane);
        draft_.anchor_loops.back() = outer;
        draft_.spread(anchor, "");
    }

    void pointwise(const KeptStage &kept) {
        const bool holds_folds = kept.stage == flow_.anchor && shares_columns(kept);
        if (holds_folds && holds_columns(kept) && lanes_for(kept.stage->extents.back(), widest_bits(kept)) > 1) {
            anchor_columns(kept);
            return;
        }
        if (!holds_folds && kept.stage == flow_.anchor && flow_.kept.size() == 1 && transposed(kept)) {
            return;
        }
        VectorAxis axis = choose_vector_axis(kernel_, kept, false, kept.is_output ? 0 : draft_.depth_of(kept));
        if (holds_folds) {
            axis = {};  // one element at a time, each with its own reductions
        }
        std::vector<std::string> order = arguments_of(kept);
        if (!axis.name.empty()) {
            const auto found = std::find(order.begin(), order.end(), axis.name);
            const int position = static_cast<int>(found - order.begin());
            vectorise(kept, axis);
            if (position + 1 != static_cast<int>(order.size())) {
                move_inside(kept, axis.name, position);
            }
            if (kept.stage == flow_.anchor) {
                draft_.usable_depth = position;
            }
        }
        draft_.spread(kept, axis.name);
    }

    bool transposed(const KeptStage &kept) {
        const std::optional<Transposition> transposition = find_transposition(kernel_, kept);
        if (!transposition) {
            return false;
        }
        const std::vector<std::string> outside = schedule_transposition(kept, *transposition, draft_.builder);
        double elements = 1;
        for (const Extent &extent : kept.stage->extents) {
            elements *= draft_.typical(extent);
        }
        if (CpuScheduleDraft::is_worth_parallel(elements * kept.cost)) {
            draft_.at(*kept.stage).parallel(outside.front());
        }
        return true;
    }

    void vectorise(const KeptStage &kept, const VectorAxis &axis) {
        draft_.at(*kept.stage).split(axis.name, axis.name + "o", axis.name + "i", axis.lanes).vectorize(axis.name + "i");
    }

    /// The split axis goes inside those that follow it.
    void move_inside(const KeptStage &kept, const std::string &axis, int position) {
        std::vector<DirectiveArgument> loops = {axis + "i", axis + "o"};
        const std::vector<std::string> names = arguments_of(kept);
        for (int i = static_cast<int>(names.size()) - 1; i > position; i--) {
            loops.emplace_back(names[i]);
        }
        draft_.builder.directives.push_back({kept.stage->name(), "reorder", loops, {}, {}});
    }

    const Kernel &kernel_;
    const FixedInputs &fixed_;
    CpuScheduleDraft draft_;
    const KernelFlow &flow_ = draft_.flow;
    std::set<std::string> done_;
};

}  // namespace

Directives default_cpu_schedule(const Kernel &kernel, const FixedInputs &fixed) { return DefaultSchedule(kernel, fixed).run(); }

}  // namespace tilewright
