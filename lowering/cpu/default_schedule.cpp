#include "lowering/cpu/default_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "dsl/algorithm/combiner.h"
#include "dsl/schedule/builder.h"
#include "lowering/cpu/kernel_flow.h"
#include "lowering/cpu/partial_fold.h"
#include "lowering/cpu/product_schedule.h"
#include "lowering/cpu/transpose_schedule.h"
#include "lowering/cpu/vector_axis.h"

namespace tilewright {

namespace {

constexpr double parallel_work = 100000;  ///< rough operations below which a second core costs more than it brings
constexpr double task_work = 30000;       ///< of one parallel task

class DefaultSchedule {
public:
    DefaultSchedule(const Kernel &kernel, const FixedInputs &fixed) : kernel_(kernel), fixed_(fixed), flow_(analyse_flow(kernel)) {}

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
        return std::move(builder_.directives);
    }

private:
    StageSchedule at(const Stage &stage) { return builder_[stage.name()]; }
    static std::vector<std::string> arguments(const KeptStage &kept) { return kept.stage->func.function().args(); }

    static std::vector<std::string> reductions(const KeptStage &kept) {
        std::vector<std::string> names;
        const Halide::Internal::Function function = kept.stage->func.function();
        if (function.has_update_definition()) {
            for (const auto &variable : function.update(0).schedule().rvars()) {
                names.push_back(variable.var);
            }
        }
        return names;
    }

    void place_inlined() {
        for (const Stage &stage : kernel_.algorithm.stages) {
            if (!flow_.find(stage.name())) {
                at(stage).compute_inline();
            }
        }
    }

    static bool is_fold(const KeptStage &kept) { return kept.form == Form::reduction || kept.form == Form::contraction || kept.form == Form::window; }

    /// Loops of the anchor inside which the stages that it needs are computed: the deepest at which one of them is.
    int deepest_place() const {
        int deepest = 0;
        for (const KeptStage &kept : flow_.kept) {
            if (kept.stage != flow_.anchor) {
                deepest = std::max(deepest, kept.depth);
            }
        }
        return deepest;
    }

    // ---- The anchor --------------------------------------------------------------------------------------------------------------

    void schedule_anchor() {
        const KeptStage &anchor = *flow_.find(flow_.anchor->name());
        anchor_loops_ = arguments(anchor);
        if (auto product = find_product(kernel_, flow_, fixed_)) {
            schedule_product(kernel_, flow_, *product, builder_);
            done_.insert(product->product->stage->name());
            done_.insert(anchor.stage->name());
            product_ = product;
            for (int i = 0; i < anchor.stage->rank(); i++) {
                anchor_loops_[i] = product->loop_of_axis[i];
            }
            return;
        }
        schedule_stage(anchor);
    }

    /// Value loops that stages may be computed inside: the axes before the vectorised one.
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
            case Form::gather: pointwise(kept); break;
            case Form::reduction:
            case Form::contraction:
            case Form::window: fold(kept); break;
            case Form::scan: scan(kept); break;
            case Form::scatter: initial_values(kept); break;
            case Form::sort: break;
        }
    }

    int depth_of(const KeptStage &kept) const {
        if (kept.stage == flow_.anchor) {
            return 0;
        }
        int depth = std::min(kept.depth, static_cast<int>(anchor_loops_.size()));
        if (product_) {
            depth = std::min(depth, product_->usable_depth);
        } else if (vectorised_anchor_axis_ >= 0) {
            depth = std::min(depth, vectorised_anchor_axis_);
        }
        return depth;
    }

    void place(const KeptStage &kept) {
        if (kept.is_output) {
            return;
        }
        const int depth = depth_of(kept);
        if (depth > 0) {
            at(*kept.stage).compute_at(flow_.anchor->name(), anchor_loops_[depth - 1]);
        } else {
            at(*kept.stage).compute_root();
        }
    }

    /// Folds that the anchor needs element by element are best made wide along its last axis.
    bool holds_columns(const KeptStage &anchor) const {
        return std::any_of(flow_.kept.begin(), flow_.kept.end(), [&](const KeptStage &kept) {
            if (kept.stage == anchor.stage || kept.depth != anchor.stage->rank() || !is_fold(kept)) {
                return false;
            }
            const VectorAxis axis = choose_vector_axis(kernel_, kept, true);
            return !axis.name.empty() && !axis.is_reduction && axis.name == arguments(kept).back() &&
                   kept.anchor_axes.back() == anchor.stage->rank() - 1;
        });
    }

    /// The anchor in pieces of some columns, inside which its folds are computed for all of them at once.
    void anchor_columns(const KeptStage &anchor) {
        const std::string axis = arguments(anchor).back(), outer = axis + "o", piece = axis + "b", unrolled = axis + "u", lane = axis + "i";
        const Extent &extent = anchor.stage->extents.back();
        const int lanes = lanes_for(extent, widest_bits(anchor));
        const std::optional<std::int64_t> constant = extent.constant();
        const std::int64_t columns = !constant || *constant >= 4 * lanes ? 4 * lanes : lanes;
        at(*anchor.stage).split(axis, outer, piece, columns).split(piece, unrolled, lane, lanes).vectorize(lane);
        anchor_loops_.back() = outer;
        spread(anchor, "");
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
        VectorAxis axis = choose_vector_axis(kernel_, kept, false, kept.is_output ? 0 : depth_of(kept));
        if (holds_folds) {
            axis = {};  // one element at a time, each with its own reductions
        }
        std::vector<std::string> order = arguments(kept);
        if (!axis.name.empty()) {
            const auto found = std::find(order.begin(), order.end(), axis.name);
            const int position = static_cast<int>(found - order.begin());
            vectorise(kept, axis);
            if (position + 1 != static_cast<int>(order.size())) {
                move_inside(kept, axis.name, position);
            }
            if (kept.stage == flow_.anchor) {
                vectorised_anchor_axis_ = position;
            }
        }
        spread(kept, axis.name);
    }

    bool transposed(const KeptStage &kept) {
        const std::optional<Transposition> transposition = find_transposition(kernel_, kept);
        if (!transposition) {
            return false;
        }
        const std::vector<std::string> outside = schedule_transposition(kept, *transposition, builder_);
        double elements = 1;
        for (const Extent &extent : kept.stage->extents) {
            elements *= typical(extent);
        }
        if (elements * kept.cost >= parallel_work) {
            at(*kept.stage).parallel(outside.front());
        }
        return true;
    }

    void vectorise(const KeptStage &kept, const VectorAxis &axis) {
        at(*kept.stage).split(axis.name, axis.name + "o", axis.name + "i", axis.lanes).vectorize(axis.name + "i");
    }

    /// The split axis goes inside those that follow it.
    void move_inside(const KeptStage &kept, const std::string &axis, int position) {
        std::vector<DirectiveArgument> loops = {axis + "i", axis + "o"};
        const std::vector<std::string> names = arguments(kept);
        for (int i = static_cast<int>(names.size()) - 1; i > position; i--) {
            loops.emplace_back(names[i]);
        }
        builder_.directives.push_back({kept.stage->name(), "reorder", loops, {}, {}});
    }

    // ---- Parallel loops -------------------------------------------------------------------------------------------------------------

    double inner_work(const KeptStage &kept, int axis) const {
        double work = kept.cost;
        for (int i = 0; i < kept.stage->rank(); i++) {
            if (i != axis) {
                work *= typical(kept.stage->extents[i]);
            }
        }
        for (const Extent &extent : kept.stage->reduction_extents) {
            work *= typical(extent);
        }
        if (kept.stage == flow_.anchor) {
            for (const KeptStage &other : flow_.kept) {
                if (other.stage != kept.stage && depth_of(other) > axis) {
                    work += inner_work(other, axis);
                }
            }
        }
        return work;
    }

    double typical(const Extent &extent) const {
        if (const auto constant = extent.constant()) {
            return static_cast<double>(*constant);
        }
        const SymbolRange range = extent.bounds(kernel_.algorithm.symbols);
        return std::min(64.0, static_cast<double>(range.max));
    }

    /// Spreads the outermost loop that is worth it over the cores, in tasks of some work each.
    void spread(const KeptStage &kept, const std::string &taken) {
        if (!kept.is_output && depth_of(kept) > 0) {
            return;
        }
        const std::vector<std::string> names = arguments(kept);
        for (int i = 0; i < kept.stage->rank(); i++) {
            const std::optional<std::int64_t> extent = kept.stage->extents[i].constant();
            const bool is_in_pieces = kept.stage == flow_.anchor && anchor_loops_[i] == names[i] + "o";
            if ((extent && *extent < 2) || is_in_pieces) {
                continue;
            }
            const double inside = inner_work(kept, i);
            if (extent && inside * static_cast<double>(*extent) < parallel_work) {
                return;
            }
            spread_axis(kept, i, names[i] == taken ? names[i] + "o" : names[i], inside);
            return;
        }
    }

    void spread_axis(const KeptStage &kept, int axis, const std::string &loop, double inside) {
        const std::int64_t lanes = loop == arguments(kept)[axis] ? 1 : 16;
        const std::optional<std::int64_t> extent = kept.stage->extents[axis].constant();
        double chunk = std::ceil(task_work / std::max(1.0, inside * static_cast<double>(lanes)));
        if (extent) {
            chunk = std::min(chunk, std::ceil(static_cast<double>(*extent) / static_cast<double>(lanes) / 2));
        }
        if (chunk <= 1) {
            at(*kept.stage).parallel(loop);
            return;
        }
        const std::string task = arguments(kept)[axis] + "t", inner = arguments(kept)[axis] + "n";
        at(*kept.stage).split(loop, task, inner, static_cast<std::int64_t>(chunk)).parallel(task);
        if (kept.stage == flow_.anchor && lanes == 1) {
            anchor_loops_[axis] = inner;
        }
    }

    // ---- Reductions -------------------------------------------------------------------------------------------------------------------

    void fold(const KeptStage &kept) {
        const VectorAxis axis = choose_vector_axis(kernel_, kept, true, kept.is_output ? 0 : depth_of(kept));
        if (axis.name.empty()) {
            spread(kept, "");
        } else if (axis.is_reduction) {
            fold_rows(kept, axis);
        } else {
            fold_columns(kept, axis);
        }
    }

    /// Lanes along the reduced axis, combined at the end of each row.
    void fold_rows(const KeptStage &kept, const VectorAxis &axis) {
        const auto fold = match_fold(kept.stage->func);
        if (!fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last) {
            spread(kept, "");
            return;
        }
        const std::optional<std::int64_t> extent = axis.extent.constant();
        const bool is_long = !extent || *extent >= 256;
        const bool is_simple = fold->combiner == Combiner::sum || fold->combiner == Combiner::maximum || fold->combiner == Combiner::minimum;
        const std::int64_t lanes = is_long && is_simple && axis.lanes == 16 ? 32 : axis.lanes;
        spread(kept, "");
        at(*kept.stage).split(axis.name, axis.name + "o", axis.name + "i", lanes).rfactor(axis.name + "i", "lane");
        StageSchedule partial = builder_[kept.stage->name() + "_partial"];
        partial.vectorize("lane");
        place_partial(kept, partial);
    }

    /// Beside the stage where that has no loops of its own, else inside its innermost loop.
    void place_partial(const KeptStage &kept, StageSchedule &partial) {
        const int depth = kept.is_output ? 0 : depth_of(kept);
        const int own = kept.stage->rank();
        if (own > 0 && (depth == 0 || own > depth)) {
            const std::string innermost = arguments(kept).back();
            const bool is_chunked = std::any_of(builder_.directives.begin(), builder_.directives.end(), [&](const Directive &d) {
                return d.stage == kept.stage->name() && d.name == "split" && d.arguments[0] == DirectiveArgument(innermost);
            });
            partial.compute_at(kept.stage->name(), is_chunked ? innermost + "n" : innermost);
        } else if (depth > 0) {
            partial.compute_at(flow_.anchor->name(), anchor_loops_[depth - 1]);
        } else {
            partial.compute_root();
        }
    }

    /// Lanes along an axis of the value; each lane folds its own column.
    void fold_columns(const KeptStage &kept, const VectorAxis &axis) {
        const std::string outer = axis.name + "o", wide = axis.name + "w", unrolled = axis.name + "u", lane = axis.name + "i";
        const std::optional<std::int64_t> extent = axis.extent.constant();
        const bool is_long = !extent || *extent >= 4 * axis.lanes;
        std::vector<DirectiveArgument> order = {lane};
        if (is_long) {
            at(*kept.stage).split(axis.name, outer, wide, 4 * axis.lanes).split(wide, unrolled, lane, axis.lanes).vectorize(lane).unroll(unrolled);
            order.emplace_back(unrolled);
        } else {
            at(*kept.stage).split(axis.name, outer, lane, axis.lanes).vectorize(lane);
        }
        const std::vector<std::string> reduced = reductions(kept);
        for (auto r = reduced.rbegin(); r != reduced.rend(); ++r) {
            order.emplace_back(*r);
        }
        order.emplace_back(outer);
        const std::vector<std::string> names = arguments(kept);
        for (auto name = names.rbegin(); name != names.rend(); ++name) {
            if (*name != axis.name) {
                order.emplace_back(*name);
            }
        }
        builder_.directives.push_back({kept.stage->name(), "reorder", order, {}, {}});
        if (kept.stage == flow_.anchor) {
            vectorised_anchor_axis_ = static_cast<int>(std::find(names.begin(), names.end(), axis.name) - names.begin());
        }
        spread(kept, axis.name);
    }

    // ---- Scans and scatters -------------------------------------------------------------------------------------------------------

    void scan(const KeptStage &kept) {
        const auto fold = match_fold(kept.stage->func);
        const int own = fold ? fold->scan_axis : -1;
        const std::vector<std::string> names = arguments(kept);
        const int last = kept.stage->rank() - 1;
        const int lanes = own == last || own < 0 ? 1 : lanes_for(kept.stage->extents[last], widest_bits(kept));
        if (lanes > 1) {
            at(*kept.stage).split(names[last], names[last] + "o", names[last] + "i", lanes).vectorize(names[last] + "i");
            builder_.directives.push_back({kept.stage->name(), "reorder", {names[last] + "i", reductions(kept).back()}, {}, {}});
        }
        if (own != 0 && !(lanes > 1 && last == 0)) {
            spread(kept, lanes > 1 ? names[last] : "");
        }
    }

    void initial_values(const KeptStage &) {}

    const Kernel &kernel_;
    const FixedInputs &fixed_;
    KernelFlow flow_;
    ScheduleBuilder builder_;
    std::vector<std::string> anchor_loops_;  ///< name of the loop of each of the anchor's axes that stages are computed at
    int vectorised_anchor_axis_ = -1;
    std::optional<ProductPlace> product_;
    std::set<std::string> done_;
};

}  // namespace

Directives default_cpu_schedule(const Kernel &kernel, const FixedInputs &fixed) {
    return DefaultSchedule(kernel, fixed).run();
}

}  // namespace tilewright
