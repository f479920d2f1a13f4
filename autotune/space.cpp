#include "autotune/space.h"

#include <algorithm>
#include <functional>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/choose_schedules.h"
#include "lowering/cuda/candidates.h"
#include "lowering/cuda/matmul_engine.h"

namespace tilewright {
namespace {

void add(std::vector<Directives> &list, Directives candidate) {
    if (std::find(list.begin(), list.end(), candidate) == list.end()) {
        list.push_back(std::move(candidate));
    }
}

constexpr int engine_proposals = 6;  ///< of a library's ways that are timed

/// The kernel as calls of cuBLASLt, where it is such a product.
std::vector<Directives> engine_schedules(const Kernel &kernel) {
    const auto product = std::find_if(kernel.algorithm.stages.begin(), kernel.algorithm.stages.end(),
                                      [](const Stage &stage) { return !stage.reduction_extents.empty(); });
    if (product == kernel.algorithm.stages.end() || !match_matmul(kernel)) {
        return {};
    }
    std::vector<Directives> schedules;
    for (int proposal = 1; proposal <= engine_proposals; ++proposal) {
        ScheduleBuilder schedule;
        schedule[product->name()].engine(proposal == 1 ? "cublaslt" : fmt::format("cublaslt:{}", proposal));
        schedules.push_back(std::move(schedule.directives));
    }
    return schedules;
}

bool is_atomic(const Directive &directive) { return directive.name == "atomic"; }

/// Numbers of these directives are sizes that a search may change.
bool is_tunable(const Directive &directive) {
    static const std::set<std::string> names = {"split", "tile", "split_blocks", "launch_bounds", "pipeline", "raster"};
    return names.contains(directive.name);
}

std::vector<std::int64_t> near(std::int64_t value) {
    std::vector<std::int64_t> values{value * 2};
    if (value >= 2) {
        values.push_back(value / 2);
    }
    return values;
}

}  // namespace

std::vector<Directives> first_candidates(const Kernel &kernel, const Directives &start, const Target &target, const Options &options) {
    std::vector<Directives> list{start};
    if (target.kind != TargetKind::cuda) {
        return list;
    }
    if (allows_engine(options, "cublaslt")) {
        for (Directives &engine : engine_schedules(kernel)) {
            add(list, std::move(engine));
        }
    }
    for (Directives &candidate : cuda_candidates(kernel, *target.gpu)) {
        Directives in_order = candidate;
        if (std::erase_if(in_order, is_atomic) > 0) {
            add(list, std::move(in_order));  // additions that meet in one element one after the other
        }
        if (!options.deterministic || std::none_of(candidate.begin(), candidate.end(), is_atomic)) {
            add(list, std::move(candidate));
        }
    }
    return list;
}

std::vector<Directives> neighbours(const Kernel &kernel, const Directives &directives, const Target &target) {
    std::vector<Directives> list;
    if (target.gpu) {
        for (Directives &candidate : cuda_variations(kernel, *target.gpu, directives)) {
            add(list, std::move(candidate));
        }
    }
    for (Directives &candidate : neighbours(directives)) {
        add(list, std::move(candidate));
    }
    return list;
}

std::vector<Directives> neighbours(const Directives &directives) {
    std::vector<Directives> list;
    std::set<std::pair<std::string, std::int64_t>> joint;  // axis and factor of splits that were changed together
    for (std::size_t i = 0; i < directives.size(); ++i) {
        const Directive &directive = directives[i];
        if (directive.name == "parallel" || directive.name == "unroll") {
            Directives without = directives;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            add(list, std::move(without));
        }
        if (!is_tunable(directive)) {
            continue;
        }
        for (std::size_t a = 0; a < directive.arguments.size(); ++a) {
            const auto *value = std::get_if<std::int64_t>(&directive.arguments[a]);
            if (!value) {
                continue;
            }
            const auto same = [&](const Directive &other) {
                return other.name == directive.name && other.arguments.size() > a && other.arguments[a] == directive.arguments[a] &&
                       other.arguments[0] == directive.arguments[0];
            };
            const bool several = std::count_if(directives.begin(), directives.end(), same) > 1;
            const auto *axis = std::get_if<std::string>(&directive.arguments[0]);
            const bool first = several && axis && joint.emplace(*axis, *value).second;
            for (const std::int64_t other : near(*value)) {
                if (first) {
                    Directives together = directives;
                    for (Directive &d : together) {
                        if (same(d)) {
                            d.arguments[a] = other;
                        }
                    }
                    add(list, std::move(together));
                }
                Directives alone = directives;
                alone[i].arguments[a] = other;
                add(list, std::move(alone));
            }
        }
    }
    return list;
}

}  // namespace tilewright
