#include "autotune/search/space.h"

#include <algorithm>
#include <functional>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/choose_schedules.h"
#include "lowering/cuda/engine.h"

namespace tilewright {
namespace {

void add(std::vector<Directives> &list, Directives candidate) {
    if (std::find(list.begin(), list.end(), candidate) == list.end()) {
        list.push_back(std::move(candidate));
    }
}

/// How many of a library's ways are timed: cuDNN compiles each, which takes a while.
int proposals_of(EngineLibrary library) { return library == EngineLibrary::cublaslt ? 6 : 3; }

/// The kernel as calls of libraries that compute it.
std::vector<Directives> engine_schedules(const Kernel &kernel, const GpuFacts &facts, const Options &options) {
    std::vector<Directives> schedules;
    for (const EngineLibrary library : engine_libraries) {
        const bool fits = allows_engine(options, name(library)) && computes(library, kernel, facts);
        for (int proposal = 1; fits && proposal <= proposals_of(library); ++proposal) {
            schedules.push_back(engine_schedule(library, kernel, proposal));
        }
    }
    return schedules;
}

bool is_atomic(const Directive &directive) { return directive.name == "atomic"; }

/// Numbers of these directives are sizes that a search may change.
bool is_tunable(const Directive &directive) {
    static const std::set<std::string> names = {"split", "tile", "split_blocks", "launch_bounds", "pipeline", "raster"};
    return names.contains(directive.name);
}

/// What may be left out, and the rest still says how the kernel is computed.
bool is_optional(const Directive &directive) {
    static const std::set<std::string> names = {"parallel",          "unroll",        "persistent", "take_turns",
                                                "hide_exponentials", "launch_bounds", "raster",     "preselect"};
    return names.contains(directive.name);
}

/// What a stage that has a producer warp may be given beside what it has.
std::vector<Directive> additions(const Directives &directives, const Directive &producer) {
    std::vector<Directive> list;
    for (Directive addition :
         {Directive{producer.stage, "take_turns", {}, {}, {}}, Directive{producer.stage, "persistent", {}, {}, {}},
          Directive{producer.stage, "hide_exponentials", {}, {}, {}}, Directive{producer.stage, "raster", {std::int64_t{8}}, {}, {}}}) {
        const auto has = [&](const Directive &d) { return d.stage == addition.stage && d.name == addition.name; };
        if (std::none_of(directives.begin(), directives.end(), has)) {
            list.push_back(std::move(addition));
        }
    }
    return list;
}

/// The same sort by other threads, as many as that takes.
std::vector<Directives> other_sorters(const Directives &directives, const Directive &sort) {
    std::vector<Directives> list;
    for (const char *level : {"warp", "block", "grid"}) {
        Directives other = directives;
        std::erase_if(other, [&](const Directive &d) { return d.stage == sort.stage && d.name != sort.name; });
        std::find(other.begin(), other.end(), sort)->arguments[0] = std::string(level);
        list.push_back(std::move(other));
    }
    return list;
}

/// Whether loops of the stage say how many threads a block has.
bool has_threads(const Directives &directives, const std::string &stage) {
    return std::any_of(directives.begin(), directives.end(),
                       [&](const Directive &d) { return d.stage == stage && d.name == "gpu_threads"; });
}

/// Numbers that count a few things change by one.
std::vector<std::int64_t> near(const Directive &directive, std::size_t argument, std::int64_t value) {
    std::vector<std::int64_t> values{value * 2};
    if (directive.name == "pipeline" || (directive.name == "launch_bounds" && argument == 1)) {
        values = value > 1 ? std::vector{value + 1, value - 1} : std::vector{value + 1};
    } else if (value >= 2) {
        values.push_back(value / 2);
    }
    return values;
}

}  // namespace

SearchSpace::SearchSpace(const Kernel &kernel, const Target &target, const Options &options) : kernel_(kernel), options_(options) {
    if (target.kind == TargetKind::cuda) {
        cuda_.emplace(kernel, *target.gpu);
        engines_ = engine_schedules(kernel, *target.gpu, options);
    }
}

std::vector<Directives> SearchSpace::first(const Directives &start) {
    std::vector<Directives> list{start};
    if (!cuda_) {
        return list;
    }
    for (const Directives &engine : engines_) {
        add(list, engine);
    }
    for (Directives &candidate : cuda_->first()) {
        Directives in_order = candidate;
        if (std::erase_if(in_order, is_atomic) > 0) {
            add(list, std::move(in_order));  // additions that meet in one element one after the other
        }
        if (!options_.deterministic || std::none_of(candidate.begin(), candidate.end(), is_atomic)) {
            add(list, std::move(candidate));
        }
    }
    return list;
}

std::vector<Directives> SearchSpace::around(const Directives &directives) {
    std::vector<Directives> list = cuda_ ? cuda_->around(directives) : std::vector<Directives>();
    if (options_.deterministic) {
        std::erase_if(list, [](const Directives &candidate) { return std::any_of(candidate.begin(), candidate.end(), is_atomic); });
    }
    for (Directives &candidate : neighbours(directives)) {
        add(list, std::move(candidate));
    }
    return list;
}

std::vector<Directives> SearchSpace::suggestions(const Directives &directives, const Resources &resources) {
    return cuda_ ? cuda_->denser(directives, resources.registers, resources.occupancy) : std::vector<Directives>();
}

std::vector<Directives> neighbours(const Directives &directives) {
    std::vector<Directives> list;
    std::set<std::pair<std::string, std::int64_t>> joint;  // axis and factor of splits that were changed together
    for (std::size_t i = 0; i < directives.size(); ++i) {
        const Directive &directive = directives[i];
        if (is_optional(directive)) {
            Directives without = directives;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            add(list, std::move(without));
        }
        for (Directive &addition : directive.name == "producer_warps" ? additions(directives, directive) : std::vector<Directive>()) {
            Directives with = directives;
            with.insert(with.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(addition));
            add(list, std::move(with));
        }
        for (Directives &other : directive.name == "sort_across" ? other_sorters(directives, directive) : std::vector<Directives>()) {
            add(list, std::move(other));
        }
        if (!is_tunable(directive)) {
            continue;
        }
        for (std::size_t a = 0; a < directive.arguments.size(); ++a) {
            const auto *value = std::get_if<std::int64_t>(&directive.arguments[a]);
            const bool follows = directive.name == "launch_bounds" && a == 0 && has_threads(directives, directive.stage);
            if (!value || follows) {
                continue;
            }
            const auto same = [&](const Directive &other) {
                return other.name == directive.name && other.arguments.size() > a && other.arguments[a] == directive.arguments[a] &&
                       other.arguments[0] == directive.arguments[0];
            };
            const bool several = std::count_if(directives.begin(), directives.end(), same) > 1;
            const auto *axis = std::get_if<std::string>(&directive.arguments[0]);
            const bool first = several && axis && joint.emplace(*axis, *value).second;
            for (const std::int64_t other : near(directive, a, *value)) {
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
