// When two groups may become one kernel. Only forms, access maps, extents and costs decide; no operator is named.
#include <fmt/format.h>

#include <algorithm>

#include "lowering/fusion/groups.h"
#include "lowering/fusion/row_rules.h"

namespace tilewright {

namespace {

constexpr int cheap_prologue_cost = 6;          // operations an element that a product may repeat for each of its tiles
constexpr std::size_t most_prologue_reads = 3;  // a quantised weight, its scale and its zero point
constexpr double largest_repetition = 64;       // operations that inlining may add for each element read

int group_cost(const StageGraph &graph, const Group &group) {
    int cost = 0;
    for (int node : group.nodes) {
        cost += graph.node(node).cost;
    }
    return cost;
}

bool is_expensive(const StageGraph &graph, const Group &group) {
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](int node) { return graph.node(node).is_expensive; });
}

double work_points(const StageGraph &graph, int node) {
    return typical_size(graph, graph.node(node).stage->extents) * typical_size(graph, graph.node(node).stage->reduction_extents);
}

/// Operations that computing group `a` inside group `b` costs for each operation that it would cost alone.
double repetition(const Groups &groups, int a, int b) {
    const StageGraph &graph = groups.graph();
    double worst = 1;
    for (int reader : groups.group(b).nodes) {
        std::map<int, int> places;
        for (const EffectiveRead &read : graph.effective_reads(reader)) {
            if (read.producer >= 0 && groups.has(read.producer) && groups.group_of(read.producer) == a) {
                ++places[read.producer];
            }
        }
        for (const auto &[producer, count] : places) {
            worst = std::max(worst, count * work_points(graph, reader) / std::max(1.0, work_points(graph, producer)));
        }
    }
    return worst;
}

bool reads_in_place(const StageGraph &graph, int reader, int producer) {
    for (const EffectiveRead &read : graph.effective_reads(reader)) {
        if (read.producer != producer) {
            continue;
        }
        for (std::size_t i = 0; i < read.indices.size(); ++i) {
            const auto *variable = read.indices[i].as<Halide::Internal::Variable>();
            if (!variable || i >= graph.node(reader).axes.size() || variable->name != graph.node(reader).axes[i].name) {
                return false;
            }
        }
    }
    return true;
}

/// Everything that a pointwise kernel stores runs over one space.
bool stores_one_space(const Groups &groups, const std::vector<int> &merged, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const std::vector<int> stored = groups.stored_nodes(merged);
    for (int node : stored) {
        if (graph.node(node).stage->extents != graph.node(stored.front()).stage->extents) {
            reason = fmt::format("both are stored, {} over {} and {} over {}", graph.node(stored.front()).name(),
                                 to_string(graph.node(stored.front()).stage->extents), graph.node(node).name(),
                                 to_string(graph.node(node).stage->extents));
            return false;
        }
    }
    return true;
}

bool has_room(const Groups &groups, const FusionOptions &options, const std::vector<int> &merged, std::string &reason) {
    const std::vector<bool> inside = groups.among_all(merged);
    std::vector<std::pair<int, int>> tensors;
    for (int node : merged) {
        for (const EffectiveRead &read : groups.graph().effective_reads(node)) {
            if (read.producer < 0 || !inside[read.producer]) {
                tensors.emplace_back(read.producer, read.input);
            }
        }
    }
    if (tensors.size() + merged.size() <= static_cast<std::size_t>(options.largest_argument_count)) {
        return true;  // however often each is read
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    const std::size_t count = tensors.size() + groups.stored_nodes(merged).size();
    if (count > static_cast<std::size_t>(options.largest_argument_count)) {
        reason = fmt::format("the kernel would have {} arguments, more than {}", count, options.largest_argument_count);
        return false;
    }
    return true;
}

bool is_inlinable_prologue(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const double times = repetition(groups, a, b);
    const int cost = group_cost(graph, groups.group(a));
    if (options.mode != FusionMode::max && times > 1.5 &&
        (times * cost > largest_repetition * (is_expensive(graph, groups.group(a)) ? 1 : 4))) {
        reason = fmt::format("each element would be computed {:.0f} times, {} operations each", times, cost);
        return false;
    }
    return true;
}

bool pointwise_into_pointwise(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const std::vector<int> merged = groups.merged_nodes(a, b);
    if (!stores_one_space(groups, merged, reason)) {
        return false;
    }
    const std::vector<int> stored = groups.stored_nodes(merged);
    for (int node : groups.group(a).nodes) {
        if (!std::binary_search(stored.begin(), stored.end(), node)) {
            continue;
        }
        for (int reader : groups.consumers(node)) {
            if (std::binary_search(merged.begin(), merged.end(), reader) && !reads_in_place(graph, reader, node)) {
                reason = fmt::format("{} is stored anyway and read at other places", graph.node(node).name());
                return false;
            }
        }
    }
    reason = stored.size() > 1 ? "pointwise over one space, several outputs" : "pointwise: computed where it is read";
    return is_inlinable_prologue(groups, options, a, b, reason);
}

/// The columns of a group's product fit beside each other in the blocks of a cluster.
bool has_short_rows(const Groups &groups, int a) {
    constexpr std::int64_t longest_row = 4096;
    const StageGraph &graph = groups.graph();
    return std::all_of(groups.group(a).nodes.begin(), groups.group(a).nodes.end(), [&](int node) {
        const std::vector<Extent> &extents = graph.node(node).stage->extents;
        return graph.node(node).form != Form::contraction ||
               (!extents.empty() && extents.back().is_constant() && extents.back().value() <= longest_row);
    });
}

std::string update_word(const GroupContent &content) {
    return content.contractions ? "product"
           : content.windows    ? "window"
           : content.scans      ? "scan"
           : content.sorts      ? "sort"
           : content.scatters   ? "scatter"
                                : "reduction";
}

/// A product repeats its prologue for each tile, a window for each neighbour; a sort or scatter reads each element once.
bool prologue(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const GroupContent &content = groups.group(b).content;
    for (int node : groups.group(a).nodes) {
        const auto &readers = groups.consumers(node);
        if (groups.is_read_outside(node) || std::any_of(readers.begin(), readers.end(), [&](int reader) {
                return groups.group_of(reader) != a && groups.group_of(reader) != b;
            })) {
            reason = fmt::format("{} is stored anyway, for others read it", graph.node(node).name());
            return false;
        }
    }
    const int cost = group_cost(graph, groups.group(a));
    const bool repeats = content.contractions || content.windows;
    if (repeats && options.mode != FusionMode::max && (cost > cheap_prologue_cost || is_expensive(graph, groups.group(a)))) {
        reason = fmt::format("the {} would compute {} operations an element again for each tile", update_word(content), cost);
        return false;
    }
    if (repeats && options.mode != FusionMode::max) {
        std::size_t reads = 0;
        for (int node : groups.group(a).nodes) {
            for (const EffectiveRead &read : graph.effective_reads(node)) {
                reads +=
                    (read.producer < 0 || !groups.has(read.producer) || groups.group_of(read.producer) != a) && read.indices.size() > 1;
            }
        }
        if (reads > most_prologue_reads) {
            reason = fmt::format("the {} would read {} elements for each that it multiplies", update_word(content), reads);
            return false;
        }
    }
    reason = fmt::format("computed where the {} reads it", update_word(content));
    return repeats || is_inlinable_prologue(groups, options, a, b, reason);
}

/// What follows a streaming kernel's last product runs over its space, or over its rows, and reads everything in place.
bool follows_streaming(const Groups &groups, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    int second = -1;
    for (int node : groups.group(a).nodes) {
        second = graph.node(node).form == Form::contraction ? node : second;
    }
    const std::vector<Extent> &space = graph.node(second).stage->extents;
    for (int node : groups.group(b).nodes) {
        const std::vector<Extent> &extents = graph.node(node).stage->extents;
        bool fits = extents.size() <= space.size();
        for (std::size_t i = 0; fits && i < extents.size(); ++i) {
            fits = extents[i] == space[i] || extents[i] == Extent(1);
        }
        if (!fits) {
            reason =
                fmt::format("{} runs over {}, the streamed result over {}", graph.node(node).name(), to_string(extents), to_string(space));
            return false;
        }
        for (const EffectiveRead &read : graph.effective_reads(node)) {
            if (read.producer < 0 || !groups.has(read.producer) || groups.group_of(read.producer) != a) {
                continue;
            }
            for (std::size_t i = 0; i < read.indices.size(); ++i) {
                const auto *variable = read.indices[i].as<Halide::Internal::Variable>();
                const bool in_place = variable && i < graph.node(node).axes.size() && variable->name == graph.node(node).axes[i].name;
                const bool is_only_place = graph.node(read.producer).stage->extents[i] == Extent(1);
                if (!in_place && !is_only_place) {
                    reason =
                        fmt::format("{} reads {} at another place than its own", graph.node(node).name(), graph.node(read.producer).name());
                    return false;
                }
            }
        }
    }
    reason = "epilogue of the streaming product";
    return true;
}

/// The copy unit fetches operands from memory: what computes one stays apart.
bool feeds_product(const Groups &groups, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    for (int node : groups.group(b).nodes) {
        if (graph.node(node).form != Form::contraction) {
            continue;
        }
        for (int producer : groups.producers(node)) {
            if (groups.group_of(producer) == a) {
                reason = fmt::format("{} streams tiles of {} from memory", graph.node(node).name(), graph.node(producer).name());
                return true;
            }
        }
    }
    return false;
}

bool joins_streaming(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const bool computes_first = groups.group(a).content.is_pointwise();
    if (!computes_first && !groups.group(b).content.is_pointwise()) {
        reason = "a streaming kernel takes in no further reduction";
        return false;
    }
    if (!computes_first) {
        return follows_streaming(groups, a, b, reason);
    }
    return !feeds_product(groups, a, b, reason) && prologue(groups, options, a, b, reason);
}

}  // namespace

bool may_fuse(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    for (int node : groups.group(a).nodes) {
        const std::vector<int> &readers = groups.consumers(node);
        if (groups.ends_group(node) &&
            std::any_of(readers.begin(), readers.end(), [&](int reader) { return groups.group_of(reader) == b; })) {
            reason = options.reason_of_cuts;
            return false;
        }
    }
    if (groups.has_detour(a, b)) {
        reason = "another kernel stands between them";
        return false;
    }
    if (!has_room(groups, options, groups.merged_nodes(a, b), reason)) {
        return false;
    }
    const GroupContent &computes = groups.group(a).content;
    const GroupContent &reads = groups.group(b).content;
    if (computes.streams || reads.streams) {
        return joins_streaming(groups, options, a, b, reason);
    }
    if (computes.is_pointwise() && reads.is_pointwise()) {
        return pointwise_into_pointwise(groups, options, a, b, reason);
    }
    if (computes.is_pointwise() && !reads.is_rows()) {
        return prologue(groups, options, a, b, reason);
    }
    const bool is_epilogue = reads.is_pointwise() && !computes.sorts && !computes.scatters;
    const bool can_finish = options.can_finish_rows && (options.finishes_rows || options.mode == FusionMode::max);
    const bool finishes =
        can_finish && computes.contractions == 1 && computes.updates() == 1 && reads.is_rows() && has_short_rows(groups, a);
    if (!computes.is_pointwise() && !is_epilogue && !finishes && !(computes.is_rows() && reads.is_rows())) {
        reason = fmt::format("the result of a {} is stored before a {} reads it", update_word(computes),
                             reads.is_pointwise() ? "pointwise stage" : update_word(reads));
        return false;
    }
    if (!around_updates(groups, options, a, b, reason) ||
        (computes.is_pointwise() && !is_inlinable_prologue(groups, options, a, b, reason))) {
        return false;
    }
    reason = computes.is_pointwise() ? "read by the rows"
             : is_epilogue           ? fmt::format("epilogue of the {}", update_word(computes))
             : finishes              ? "reductions along the rows of the product"
                                     : "reductions over the same rows";
    return true;
}

bool may_join(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const GroupContent &first = groups.group(a).content;
    const GroupContent &second = groups.group(b).content;
    if (!(first.is_pointwise() || first.is_rows()) || !(second.is_pointwise() || second.is_rows()) || groups.has_path(a, b) ||
        groups.has_path(b, a)) {
        reason = "they cannot run side by side in one kernel";
        return false;
    }
    const std::vector<int> merged = groups.merged_nodes(a, b);
    if (!has_room(groups, options, merged, reason)) {
        return false;
    }
    const bool fits = first.is_pointwise() && second.is_pointwise() ? stores_one_space(groups, merged, reason)
                                                                    : around_updates(groups, options, a, b, reason);
    reason = fits ? "they read the same tensor over one space" : reason;
    return fits;
}

}  // namespace tilewright
