#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>
#include <functional>
#include <map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda_schedules/row_layout.h"

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

/// Reads of inputs for one element, through inlined stages: each as often as it is reached, up to a limit.
std::int64_t count_reads(const Algorithm &algorithm, const Stage &stage) {
    std::map<std::string, std::int64_t> known;
    const std::function<std::int64_t(const Stage &)> count = [&](const Stage &at) -> std::int64_t {
        if (const auto found = known.find(at.name()); found != known.end()) {
            return found->second;
        }
        std::int64_t reads = 0;
        for (const Read &read : reads_of(at)) {
            const Stage *producer = read.from_input ? nullptr : algorithm.find_stage(read.producer);
            reads = std::min<std::int64_t>(reads + (producer && producer != &at ? count(*producer) : 1), 1000);
        }
        return known[at.name()] = reads;
    };
    return count(stage);
}

/// Threads a block, whole warps, so that few of a line's last block have nothing to do.
std::int64_t even_threads(const Extent &length, std::int64_t most) {
    if (!length.is_constant()) {
        return most;
    }
    const std::int64_t blocks = std::max<std::int64_t>((length.value() + most - 1) / most, 1);
    return std::clamp<std::int64_t>(((length.value() + blocks - 1) / blocks + 31) / 32 * 32, 1, most);
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
    // Wide windows keep more lines apart in registers; a thread that only adds a few neighbours had better be one of many.
    constexpr std::int64_t few_lines = 4, many_lines = 8, few_reads = 16;
    const bool is_light = count_reads(draft.algorithm, stage) <= few_reads;
    const std::int64_t lines = draft.choice.steps > 0 ? draft.choice.steps : is_light ? few_lines : many_lines;
    const std::int64_t most_threads = draft.choice.threads > 0 ? draft.choice.threads : is_light ? 256 : 128;
    StageSchedule s = draft.builder[stage.name()];
    std::string inner = names.back();
    const std::string line = names[names.size() - 2];
    names.resize(names.size() - 2);
    const std::int64_t bytes = stage.func.types()[0].bytes();
    const Extent length = stage.extents[std::stoi(inner.substr(1))];
    std::int64_t lanes = draft.choice.vector > 0 ? draft.choice.vector : std::max<std::int64_t>((is_light ? 8 : 16) / bytes, 1);
    const auto divides = [&] { return mod(length, Extent(lanes)) == Extent(0); };
    // Vectors of a light stencil move to where its rows are aligned. Lines of a heavy one share what they compute, which they would not if
    // each were shifted by itself; what odd rows store goes element by element then, and fewer of them lie apart in narrow vectors.
    const bool shifts = is_light && !divides() && aligned_vector(draft, stage, length) >= lanes;
    while (!shifts && draft.choice.vector == 0 && lanes > 2 && !divides()) {
        lanes /= 2;
    }
    const std::int64_t threads = even_threads(ceil_div(length + (shifts ? lanes - 1 : 0), lanes), most_threads);
    Directive order{stage.name(), "reorder", {}, {}, {}};
    if (lanes > 1) {
        if (shifts) {
            s.align(inner, lanes);
        }
        s.split(inner, "vectors", "lane", lanes).vectorize("lane");
        inner = "vectors";
        order.arguments.emplace_back(std::string("lane"));
    }
    s.split(inner, "block", "thread", threads);
    s.split(line, "lines", "line", lines).unroll("line");
    for (const char *loop : {"line", "thread", "block", "lines"}) {
        order.arguments.emplace_back(std::string(loop));
    }
    draft.builder.directives.push_back(order);
    const std::string rest = draft.fuse_names(stage, names, "planes");
    rest.empty() ? s.gpu_blocks("block", "lines") : s.gpu_blocks("block", "lines", rest);
    s.gpu_threads("thread");
    draft.bound(s, threads);
}

}  // namespace tilewright
