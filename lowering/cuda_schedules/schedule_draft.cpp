#include "lowering/cuda_schedules/schedule_draft.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"

namespace tilewright {

std::string argument(int i) { return "d" + std::to_string(i); }

std::vector<int> memory_order(const Algorithm &algorithm, const Stage &stage, const std::vector<std::string> &others) {
    std::vector<int> order(stage.rank());
    for (int i = 0; i < stage.rank(); ++i) {
        order[i] = i;
    }
    for (const TensorOutput &output : algorithm.outputs) {
        const std::vector<Extent> &strides = output.meta.strides;
        const bool own = output.stage == stage.name() || std::find(others.begin(), others.end(), output.stage) != others.end();
        if (own && strides.size() == order.size() &&
            std::all_of(strides.begin(), strides.end(), [](const Extent &e) { return e.is_constant(); })) {
            std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a].value() > strides[b].value(); });
            break;
        }
    }
    return order;
}

ScheduleDraft::ScheduleDraft(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice)
    : kernel(kernel), algorithm(kernel.algorithm), facts(facts), choice(choice), info(kernel_shape(kernel.algorithm)) {}

std::string ScheduleDraft::fuse_arguments(const Stage &stage, int from, int to, const std::string &name) {
    if (from >= to) {
        return "";
    }
    std::string fused = argument(from);
    for (int i = from + 1; i < to; ++i) {
        const std::string next = i + 1 == to ? name : name + std::to_string(i);
        builder[stage.name()].fuse(fused, argument(i), next);
        fused = next;
    }
    return fused;
}

std::vector<std::string> ScheduleDraft::memory_order(const Stage &stage) {
    const std::vector<int> order = tilewright::memory_order(algorithm, stage);
    std::vector<std::string> names;
    bool moved = false;
    for (int i = 0; i < stage.rank(); ++i) {
        names.push_back(argument(order[i]));
        moved = moved || order[i] != i;
    }
    if (moved) {
        Directive reorder{stage.name(), "reorder", {}, {}, {}};
        reorder.arguments.assign(names.rbegin(), names.rend());
        builder.directives.push_back(reorder);
    }
    return names;
}

std::string ScheduleDraft::fuse_names(const Stage &stage, const std::vector<std::string> &names, const std::string &name) {
    if (names.empty()) {
        return "";
    }
    std::string fused = names[0];
    for (std::size_t i = 1; i < names.size(); ++i) {
        const std::string next = i + 1 == names.size() ? name : name + std::to_string(i);
        builder[stage.name()].fuse(fused, names[i], next);
        fused = next;
    }
    return fused;
}

std::string ScheduleDraft::fuse_variables(const Stage &stage, int variables) {
    const auto rvars = stage.func.function().update(0).schedule().rvars();
    std::string fused = rvars[0].var;
    for (int i = 1; i < variables; ++i) {
        const std::string next = i + 1 == variables ? "terms" : "terms" + std::to_string(i);
        builder[stage.name()].fuse(fused, rvars[i].var, next);
        fused = next;
    }
    return fused;
}

void ScheduleDraft::put_in_order(const Stage &anchor, const std::vector<std::string> &names) {
    std::vector<std::string> now;
    for (int i = 0; i < anchor.rank(); ++i) {
        now.push_back(argument(i));
    }
    if (anchor.func.function().has_update_definition()) {
        for (const auto &variable : anchor.func.function().update(0).schedule().rvars()) {
            now.push_back(variable.var);
        }
    }
    if (now != names && now.size() == names.size()) {
        Directive reorder{anchor.name(), "reorder", {}, {}, {}};
        reorder.arguments.assign(names.rbegin(), names.rend());
        builder.directives.push_back(reorder);
    }
}

void ScheduleDraft::bound(StageSchedule &s, std::int64_t threads) const {
    if (choice.min_blocks > 0) {
        s.launch_bounds(threads, choice.min_blocks);
    }
}

bool ScheduleDraft::depends(const std::string &reader, const std::string &producer) const {
    std::vector<std::string> pending{reader};
    std::set<std::string> seen;
    while (!pending.empty()) {
        const std::string at = pending.back();
        pending.pop_back();
        const Stage *stage = algorithm.find_stage(at);
        if (!stage || !seen.insert(at).second) {
            continue;
        }
        for (const Read &read : reads_of(*stage)) {
            if (!read.from_input && read.producer == producer && at != producer) {
                return true;
            }
            if (!read.from_input) {
                pending.push_back(read.producer);
            }
        }
    }
    return false;
}

std::int64_t ScheduleDraft::chosen_width(std::int64_t possible) const {
    return choice.vector > 0 ? std::min(choice.vector, possible) : possible;
}

}  // namespace tilewright
