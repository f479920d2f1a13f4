#include "lowering/cuda/shape_schedules.h"

#include <map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"

namespace tilewright {
namespace {

/// Adds a place; whether three of them now lie within a few elements of each other. Slices are stages of their own: each reads one place.
bool makes_window(std::vector<std::vector<Halide::Expr>> &places, const std::vector<Halide::Expr> &place) {
    constexpr std::int64_t reach = 16, least = 3;
    std::int64_t near = 1;
    for (const std::vector<Halide::Expr> &other : places) {
        bool same = true, close = other.size() == place.size();
        for (std::size_t i = 0; close && i < place.size(); ++i) {
            const Halide::Expr difference = Halide::Internal::simplify(place[i] - other[i]);  // keeps the node alive
            const auto *distance = difference.as<Halide::Internal::IntImm>();
            close = distance && std::abs(distance->value) <= reach;
            same = same && close && distance->value == 0;
        }
        if (close && same) {
            return false;
        }
        near += close;
    }
    places.push_back(place);
    return near >= least;
}

}  // namespace

bool is_stencil(const Algorithm &algorithm, const Stage &stage) {
    std::set<std::string> seen;
    std::vector<std::string> pending{stage.name()};
    std::map<std::string, std::vector<std::vector<Halide::Expr>>> places;
    while (!pending.empty()) {
        const Stage *at = algorithm.find_stage(pending.back());
        pending.pop_back();
        if (!at || !seen.insert(at->name()).second || at->func.function().has_update_definition() ||
            at->func.function().has_extern_definition()) {
            continue;
        }
        std::map<std::string, int> own;
        for (const Read &read : reads_of(*at)) {
            const std::string key = read.producer + "/" + std::to_string(read.tuple_index);
            if (!read.indices.empty() && (++own[key] > 1 || makes_window(places[key], read.indices))) {
                return true;
            }
            if (!read.from_input) {
                pending.push_back(read.producer);
            }
        }
    }
    return false;
}

void schedule_stencil(ScheduleDraft &draft, const Stage &stage, std::vector<std::string> names) {
    constexpr std::int64_t lines = 8;
    const std::int64_t threads = draft.choice.threads > 0 ? draft.choice.threads : 256;
    StageSchedule s = draft.builder[stage.name()];
    const std::string inner = names.back(), line = names[names.size() - 2];
    names.resize(names.size() - 2);
    s.split(inner, "block", "thread", threads);
    s.split(line, "lines", "line", draft.choice.steps > 0 ? draft.choice.steps : lines).unroll("line");
    Directive order{
        stage.name(), "reorder", {std::string("line"), std::string("thread"), std::string("block"), std::string("lines")}, {}, {}};
    draft.builder.directives.push_back(order);
    const std::string rest = draft.fuse_names(stage, names, "planes");
    rest.empty() ? s.gpu_blocks("block", "lines") : s.gpu_blocks("block", "lines", rest);
    s.gpu_threads("thread");
    draft.bound(s, threads);
}

}  // namespace tilewright
