#include "lowering/cpu_schedules/schedule_draft.h"

#include <algorithm>
#include <cmath>

#include "lowering/cpu_schedules/product_schedule.h"

namespace tilewright {

namespace {

constexpr double parallel_work = 100000;  ///< rough operations below which a second core costs more than it brings
constexpr double task_work = 30000;       ///< of one parallel task

}  // namespace

std::vector<std::string> reductions_of(const KeptStage &kept) {
    std::vector<std::string> names;
    const Halide::Internal::Function function = kept.stage->func.function();
    if (function.has_update_definition()) {
        for (const auto &variable : function.update(0).schedule().rvars()) {
            names.push_back(variable.var);
        }
    }
    return names;
}

int CpuScheduleDraft::depth_of(const KeptStage &kept) const {
    if (kept.stage == flow.anchor) {
        return 0;
    }
    const int depth = std::min(kept.depth, static_cast<int>(anchor_loops.size()));
    return usable_depth ? std::min(depth, *usable_depth) : depth;
}

double CpuScheduleDraft::typical(const Extent &extent) const {
    if (const auto constant = extent.constant()) {
        return static_cast<double>(*constant);
    }
    const SymbolRange range = extent.bounds(kernel.algorithm.symbols);
    return std::min(64.0, static_cast<double>(range.max));
}

bool CpuScheduleDraft::is_worth_parallel(double operations) { return operations >= parallel_work; }

double CpuScheduleDraft::inner_work(const KeptStage &kept, int axis) const {
    double work = kept.cost;
    for (int i = 0; i < kept.stage->rank(); i++) {
        if (i != axis) {
            work *= typical(kept.stage->extents[i]);
        }
    }
    for (const Extent &extent : kept.stage->reduction_extents) {
        work *= typical(extent);
    }
    if (kept.stage == flow.anchor) {
        for (const KeptStage &other : flow.kept) {
            if (other.stage != kept.stage && depth_of(other) > axis) {
                work += inner_work(other, axis);
            }
        }
    }
    return work;
}

void CpuScheduleDraft::spread(const KeptStage &kept, const std::string &split) {
    if (!kept.is_output && depth_of(kept) > 0) {
        return;
    }
    const std::vector<std::string> names = arguments_of(kept);
    for (int i = 0; i < kept.stage->rank(); i++) {
        const std::optional<std::int64_t> extent = kept.stage->extents[i].constant();
        const bool is_in_pieces = kept.stage == flow.anchor && anchor_loops[i] == names[i] + "o";
        if ((extent && *extent < 2) || is_in_pieces) {
            continue;
        }
        const double inside = inner_work(kept, i);
        if (extent && !is_worth_parallel(inside * static_cast<double>(*extent))) {
            return;
        }
        spread_axis(kept, i, names[i] == split ? names[i] + "o" : names[i], inside);
        return;
    }
}

void CpuScheduleDraft::spread_axis(const KeptStage &kept, int axis, const std::string &loop, double inside) {
    const std::int64_t lanes = loop == arguments_of(kept)[axis] ? 1 : 16;
    const std::optional<std::int64_t> extent = kept.stage->extents[axis].constant();
    double chunk = std::ceil(task_work / std::max(1.0, inside * static_cast<double>(lanes)));
    if (extent) {
        chunk = std::min(chunk, std::ceil(static_cast<double>(*extent) / static_cast<double>(lanes) / 2));
    }
    if (chunk <= 1) {
        at(*kept.stage).parallel(loop);
        return;
    }
    const std::string task = arguments_of(kept)[axis] + "t", inner = arguments_of(kept)[axis] + "n";
    at(*kept.stage).split(loop, task, inner, static_cast<std::int64_t>(chunk)).parallel(task);
    if (kept.stage == flow.anchor && lanes == 1) {
        anchor_loops[axis] = inner;
    }
}

}  // namespace tilewright
