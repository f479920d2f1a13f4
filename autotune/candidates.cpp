#include "autotune/candidates.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/choose_schedules.h"
#include "lowering/cuda/candidates.h"
#include "lowering/cuda/matmul_engine.h"
#include "lowering/fusion/schedule_axes.h"

namespace tilewright {
namespace {

/// Keeps the legal ones and each only once, in order.
class Collector {
public:
    Collector(const Kernel &kernel, const Target &target)
        : axes_(schedule_axes(kernel)), target_(target.kind == TargetKind::cpu ? ScheduleTarget::cpu : ScheduleTarget::cuda) {}

    void exclude(const Directives &directives) { seen_.insert(print(directives)); }
    void add(Directives directives) {
        if (!seen_.insert(print(directives)).second) {
            return;
        }
        try {
            check_directives(axes_, directives, target_);
        } catch (const UserError &) {
            return;  // a move that this kernel does not allow
        }
        kept.push_back(std::move(directives));
    }
    std::vector<Directives> kept;

private:
    KernelAxes axes_;
    ScheduleTarget target_;
    std::set<std::string> seen_;
};

Directives without(const Directives &directives, const std::string &name) {
    Directives rest;
    std::copy_if(directives.begin(), directives.end(), std::back_inserter(rest), [&](const Directive &d) { return d.name != name; });
    return rest;
}

bool is_staged_copy(const Directive &directive) { return directive.stage.find(".in(") != std::string::npos; }

/// Every split with this factor gets another: parts of one tile that are split alike stay alike.
Directives with_factor(Directives directives, std::int64_t from, std::int64_t to) {
    for (Directive &directive : directives) {
        if (directive.name == "split") {
            auto &factor = std::get<std::int64_t>(directive.arguments.back());
            factor = factor == from ? to : factor;
        }
    }
    return directives;
}

}  // namespace

std::vector<Directives> first_candidates(const Kernel &kernel, const Target &target, const Options &options) {
    Collector collector(kernel, target);
    const Directives base = default_schedule(kernel, target).variants[0].directives;
    collector.add(base);
    if (target.kind == TargetKind::cpu) {
        collector.add(without(base, "parallel"));
        return collector.kept;
    }
    for (Directives &candidate : cuda_candidates(kernel, *target.gpu)) {
        collector.add(std::move(candidate));
    }
    if (options.engines != "none" && match_matmul(kernel)) {
        for (const Stage &stage : kernel.algorithm.stages) {
            if (classify(stage) == Form::contraction) {
                collector.add({{stage.name(), "engine", {std::string("cublaslt")}, {}, {}}});
            }
        }
    }
    return collector.kept;
}

std::vector<Directives> neighbours(const Kernel &kernel, const Directives &schedule, const Target &target) {
    Collector collector(kernel, target);
    collector.exclude(schedule);
    if (target.kind == TargetKind::cuda) {
        return {};  // cuda_candidates() already lists the whole space
    }
    std::set<std::int64_t> factors;
    for (const Directive &directive : schedule) {
        if (directive.name == "split") {
            factors.insert(std::get<std::int64_t>(directive.arguments.back()));
        }
    }
    for (const std::int64_t factor : factors) {
        collector.add(with_factor(schedule, factor, factor * 2));
        if (factor >= 2) {
            collector.add(with_factor(schedule, factor, factor / 2));
        }
    }
    collector.add(without(schedule, "parallel"));
    Directives unstaged;
    std::copy_if(schedule.begin(), schedule.end(), std::back_inserter(unstaged), [](const Directive &d) { return !is_staged_copy(d); });
    collector.add(std::move(unstaged));
    return collector.kept;
}

}  // namespace tilewright
