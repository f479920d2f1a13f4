// When two groups may become one kernel. Only forms, access maps, extents and costs decide; no operator is named.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lowering/fusion/groups.h"
#include "lowering/fusion/placement.h"

namespace tilewright {

namespace {

constexpr int cheap_prologue_cost = 6;          // operations an element that a product may repeat for each of its tiles
constexpr std::size_t most_prologue_reads = 3;  // a quantised weight, its scale and its zero point
constexpr double longest_row_bytes = 1 << 20;   // a longer row does not stay on one multiprocessor (or cluster) between two passes
constexpr double shortest_mixed_row = 512, longest_mixed_row = 8192;  // elements: for a block, whose threads keep the sums of their columns
constexpr double mixed_row_unit = 8;                                  // elements of an access of 16 bytes
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

/// Longest row and number of rows of a space.
std::pair<double, double> row_shape(const StageGraph &graph, const GroupSpace &space) {
    double length = 1, rows = 1;
    for (std::size_t i = 0; i < space.extents.size(); ++i) {
        (space.reduced[i] ? length : rows) *= typical_size(graph, {space.extents[i]});
    }
    return {length, rows};
}

/// Rows lie in pieces along the innermost axis: a block can read one. Otherwise neighbours in memory belong to different rows.
bool reduces_innermost(const GroupSpace &space) {
    for (std::size_t i = space.extents.size(); i-- > 0;) {
        if (!(space.extents[i] == Extent(1))) {
            return space.reduced[i];
        }
    }
    return true;
}

/// Tensors of several axes from outside that a stage is made of, reductions between left out.
std::set<std::pair<int, int>> tensors_under(const StageGraph &graph, const std::vector<int> &merged, int node) {
    std::set<std::pair<int, int>> tensors;
    std::set<int> seen{node};
    std::vector<int> pending{node};
    while (!pending.empty()) {
        const int at = pending.back();
        pending.pop_back();
        for (const EffectiveRead &read : graph.effective_reads(at)) {
            const bool inside = read.producer >= 0 && std::binary_search(merged.begin(), merged.end(), read.producer);
            if (!inside && read.indices.size() > 1) {
                tensors.emplace(read.producer, read.input);
            } else if (inside && graph.node(read.producer).form != Form::reduction && seen.insert(read.producer).second) {
                pending.push_back(read.producer);
            }
        }
    }
    return tensors;
}

/// A sum over the rows shares a kernel with what is made of the same tensors: else it would only wait for the rows.
bool shares_tensors(const StageGraph &graph, const std::vector<int> &merged, const GroupPlacement &placement, std::string &reason) {
    const auto sums_rows = [&](int node) {
        const auto placed = placement.nodes.find(node);
        const std::size_t arguments = graph.node(node).axes.size();
        return graph.node(node).form == Form::reduction && placed != placement.nodes.end() &&
               std::any_of(placed->second.begin() + static_cast<std::ptrdiff_t>(arguments), placed->second.end(),
                           [&](int axis) { return axis >= 0 && !placement.space.reduced[axis]; });
    };
    std::set<std::pair<int, int>> others;
    for (int node : merged) {
        if (!sums_rows(node) && (graph.node(node).form == Form::reduction || graph.node(node).is_output)) {
            others.merge(tensors_under(graph, merged, node));
        }
    }
    for (int node : merged) {
        const std::set<std::pair<int, int>> own = sums_rows(node) ? tensors_under(graph, merged, node) : others;
        if (std::none_of(own.begin(), own.end(), [&](const auto &tensor) { return others.count(tensor) != 0; })) {
            reason = fmt::format("{} sums over the rows, and reads nothing that they read", graph.node(node).name());
            return false;
        }
    }
    return true;
}

/// Columns along one axis, short enough for the target and enough of them to fill it.
bool holds_columns(const StageGraph &graph, const GroupPlacement &placement, const FusionOptions &options) {
    constexpr double fewest_columns = 512;
    const GroupSpace &space = placement.space;
    int reduced = 0;
    for (std::size_t i = 0; i < space.extents.size(); ++i) {
        reduced += space.reduced[i] && !(space.extents[i] == Extent(1));
    }
    const auto [length, columns] = row_shape(graph, space);
    return !placement.is_mixed && reduced == 1 && length <= static_cast<double>(options.longest_held_column) && columns >= fewest_columns;
}

/// A group with updates takes in what stands before or after them.
bool around_updates(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const std::vector<int> merged = groups.merged_nodes(a, b);
    const GroupPlacement placement = place(graph, merged, options.mixed || options.mode == FusionMode::max);
    if (!placement.refusal.empty()) {
        reason = placement.refusal;
        return false;
    }
    for (int node : groups.stored_nodes(merged)) {
        if (!placement.nodes.count(node)) {
            reason = fmt::format("{} is stored and does not lie in the group's space {}", graph.node(node).name(),
                                 to_string(placement.space.extents));
            return false;
        }
    }
    if (placement.is_mixed && !shares_tensors(graph, merged, placement, reason)) {
        return false;
    }
    const std::vector<bool> depends = depends_on_update(graph, merged);
    const auto [length, rows] = row_shape(graph, placement.space);
    const bool fits_registers = length >= shortest_mixed_row && length <= longest_mixed_row && std::fmod(length, mixed_row_unit) == 0;
    if (placement.is_mixed && options.mode != FusionMode::max && !fits_registers) {
        reason = fmt::format("sums over the rows do not fit beside rows of {:.0f} elements in the registers of a block", length);
        return false;
    }
    for (std::size_t i = 0; i < merged.size(); ++i) {
        const bool second_pass =
            depends[i] && length > 1 && (placement.is_whole(graph, merged[i]) || graph.node(merged[i]).form == Form::reduction);
        const bool reads_updates =
            second_pass && std::any_of(groups.producers(merged[i]).begin(), groups.producers(merged[i]).end(), [&](int producer) {
                const auto at = std::lower_bound(merged.begin(), merged.end(), producer);
                return at != merged.end() && *at == producer && depends[at - merged.begin()];
            });
        if (!reads_updates || options.rereads || options.mode == FusionMode::max) {
            continue;
        }
        if (!reduces_innermost(placement.space) && length * rows > 1e6 && !holds_columns(graph, placement, options)) {
            reason = fmt::format("{} would read the columns a second time; they are not kept on the chip", graph.node(merged[i]).name());
            return false;
        }
        if (length * 4 > longest_row_bytes || (rows < 16 && length > 65536)) {
            reason = fmt::format("a row of {:.0f} elements does not stay on the chip for {}", length, graph.node(merged[i]).name());
            return false;
        }
    }
    return true;
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
                reads += (read.producer < 0 || !groups.has(read.producer) || groups.group_of(read.producer) != a) && read.indices.size() > 1;
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

}  // namespace

bool may_fuse(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason) {
    const StageGraph &graph = groups.graph();
    const GroupContent &computes = groups.group(a).content;
    const GroupContent &reads = groups.group(b).content;
    for (int node : groups.group(a).nodes) {
        if (groups.ends_group(node) && std::any_of(groups.consumers(node).begin(), groups.consumers(node).end(),
                                                   [&](int reader) { return groups.group_of(reader) == b; })) {
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
    if (computes.streams || reads.streams) {
        if (!computes.is_pointwise() && !reads.is_pointwise()) {
            reason = "a streaming kernel takes in no further reduction";
            return false;
        }
        if (!computes.is_pointwise()) {
            return follows_streaming(groups, a, b, reason);
        }
        return !feeds_product(groups, a, b, reason) && prologue(groups, options, a, b, reason);
    }
    if (computes.is_pointwise() && reads.is_pointwise()) {
        return pointwise_into_pointwise(groups, options, a, b, reason);
    }
    if (computes.is_pointwise() && !reads.is_rows()) {
        return prologue(groups, options, a, b, reason);
    }
    if (computes.is_pointwise()) {
        if (!around_updates(groups, options, a, b, reason) || !is_inlinable_prologue(groups, options, a, b, reason)) {
            return false;
        }
        reason = "read by the rows";
        return true;
    }
    if (reads.is_pointwise() && !computes.sorts && !computes.scatters) {
        if (!around_updates(groups, options, a, b, reason)) {
            return false;
        }
        reason = fmt::format("epilogue of the {}", update_word(computes));
        return true;
    }
    if (computes.is_rows() && reads.is_rows()) {
        if (!around_updates(groups, options, a, b, reason)) {
            return false;
        }
        reason = "reductions over the same rows";
        return true;
    }
    (void)graph;
    reason = fmt::format("the result of a {} is stored before a {} reads it", update_word(computes),
                         reads.is_pointwise() ? "pointwise stage" : update_word(reads));
    return false;
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
