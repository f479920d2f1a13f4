#include "lowering/cuda_schedules/row_members.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"

namespace tilewright {
namespace {

/// Axes along the row follow one another as the anchor's value lies in memory.
void order_by_memory(const Algorithm &algorithm, const Stage &anchor, RowSpace &space) {
    for (const TensorOutput &output : algorithm.outputs) {
        const std::vector<Extent> &strides = output.meta.strides;
        if (output.stage != anchor.name() ||
            !std::all_of(strides.begin(), strides.end(), [](const Extent &e) { return e.is_constant(); })) {
            continue;
        }
        std::map<std::string, std::int64_t> stride;
        for (std::size_t i = 0; i < strides.size(); ++i) {
            stride[argument(static_cast<int>(i))] = strides[i].value();
        }
        const auto along = space.names.begin() + space.rows;
        if (std::all_of(along, space.names.end(), [&](const std::string &name) { return stride.count(name) > 0; })) {
            std::stable_sort(along, space.names.end(), [&](const std::string &a, const std::string &b) { return stride[a] > stride[b]; });
        }
        return;
    }
}

/// The anchor's loop along each axis of the space; empty where it has none.
std::vector<std::string> loops_of_axes(const KernelShapeInfo &info, const Stage &anchor) {
    std::vector<std::string> names(info.space.size());
    const StageRole &role = info.role(anchor.name());
    for (int i = 0; i < static_cast<int>(role.axes.size()); ++i) {
        if (role.axes[i] >= 0) {
            names[role.axes[i]] = argument(i);
        }
    }
    if (anchor.func.function().has_update_definition()) {
        const auto rvars = anchor.func.function().update(0).schedule().rvars();
        for (int i = 0; i < static_cast<int>(role.reduction_axes.size()); ++i) {
            if (role.reduction_axes[i] >= 0) {
                names[role.reduction_axes[i]] = rvars[i].var;
            }
        }
    }
    return names;
}

/// A reduction over rows alone that keeps the row's whole length.
bool is_column_sum(const KernelShapeInfo &info, const StageRole &role, int rows) {
    const bool keeps = static_cast<int>(role.axes.size()) == static_cast<int>(info.space.size()) - rows;
    return keeps &&
           std::all_of(role.reduction_axes.begin(), role.reduction_axes.end(), [&](int a) { return a >= 0 && !info.is_reduced[a]; });
}

/// Each argument runs along the space, or has but one place.
bool has_place(const Stage &stage, const StageRole &role) {
    for (std::size_t i = 0; i < role.axes.size(); ++i) {
        if (role.axes[i] < 0 && !(stage.extents[i] == Extent(1))) {
            return false;
        }
    }
    return true;
}

class RoundedValues {
public:
    RoundedValues(const ScheduleDraft &draft, const Stage &anchor, const RowMembers &members) : draft_(draft) {
        for (const Stage *stage : members.stages) {
            placed_.insert(stage->name());
        }
        placed_.insert(anchor.name());
    }

    std::vector<const Stage *> worth_keeping() {
        std::map<std::string, std::set<std::string>> readers;
        for (const std::string &name : placed_) {
            std::set<std::string> seen;
            collect(name, seen);
            for (const std::string &read : seen) {
                readers[read].insert(name);
            }
        }
        constexpr std::size_t least_work = 4, most_values = 4;
        std::vector<const Stage *> kept;
        for (const Stage &stage : draft_.algorithm.stages) {
            const StageRole &role = draft_.info.role(stage.name());
            const std::vector<Halide::Type> types = stage.func.types();
            const bool is_rounded = types.size() == 1 && types[0].is_float() && types[0].bits() == 16;
            if (is_rounded && role.is_inlined && !role.is_output && role.axes.size() == draft_.info.space.size() &&
                readers[stage.name()].size() > 1 && kept.size() < most_values) {
                std::set<std::string> below;
                collect(stage.name(), below);
                if (below.size() >= least_work) {
                    kept.push_back(&stage);
                    placed_.insert(stage.name());
                }
            }
        }
        return kept;
    }

private:
    /// The inlined stages that `name` is computed from.
    void collect(const std::string &name, std::set<std::string> &seen) const {
        for (const Read &read : reads_of(*draft_.algorithm.find_stage(name))) {
            if (!read.from_input && !placed_.count(read.producer) && draft_.info.role(read.producer).is_inlined &&
                seen.insert(read.producer).second) {
                collect(read.producer, seen);
            }
        }
    }

    const ScheduleDraft &draft_;
    std::set<std::string> placed_;
};

}  // namespace

std::optional<RowSpace> row_space(const Algorithm &algorithm, const KernelShapeInfo &info, const Stage &anchor) {
    const int space = static_cast<int>(info.space.size());
    const std::vector<std::string> names = loops_of_axes(info, anchor);
    bool ends_reduced = false;
    for (int i = 0; i < space; ++i) {
        if (!names[i].empty()) {
            ends_reduced = info.is_reduced[i];
        } else if (!(info.space[i] == Extent(1))) {
            return std::nullopt;
        }
    }
    if (!ends_reduced) {
        return std::nullopt;
    }
    RowSpace result;
    for (const bool reduced : {false, true}) {
        for (int i = 0; i < space; ++i) {
            if (info.is_reduced[i] == reduced && !names[i].empty()) {
                result.names.push_back(names[i]);
                result.rows += !reduced;
                (reduced ? result.length : result.count) = (reduced ? result.length : result.count) * info.space[i];
            }
        }
    }
    order_by_memory(algorithm, anchor, result);
    return result;
}

RowMembers row_members(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space) {
    RowMembers members;
    std::vector<std::string> sums;
    for (const Stage &stage : draft.algorithm.stages) {
        const StageRole &role = draft.info.role(stage.name());
        if (&stage == &anchor || role.is_inlined) {
            continue;
        }
        const bool reduces_rows =
            std::any_of(role.reduction_axes.begin(), role.reduction_axes.end(), [&](int a) { return a >= 0 && !draft.info.is_reduced[a]; });
        const bool placed = has_place(stage, role);
        const bool reads_sum =
            std::any_of(sums.begin(), sums.end(), [&](const std::string &sum) { return draft.depends(stage.name(), sum); });
        const bool fits = role.form == Form::pointwise || role.form == Form::gather || role.form == Form::reduction;
        if (!placed || !fits || reads_sum || (reduces_rows && !is_column_sum(draft.info, role, space.rows))) {
            continue;
        }
        members.stages.push_back(&stage);
        members.columns = members.columns || reduces_rows;
        if (reduces_rows) {
            sums.push_back(stage.name());
        }
        members.kept += reduces_rows || (role.form != Form::reduction && role.axes.size() == draft.info.space.size());
    }
    return members;
}

std::vector<const Stage *> rounded_values(const ScheduleDraft &draft, const Stage &anchor, const RowMembers &members) {
    return RoundedValues(draft, anchor, members).worth_keeping();
}

}  // namespace tilewright
