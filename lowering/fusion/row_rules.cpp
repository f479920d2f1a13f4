#include "lowering/fusion/row_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lowering/fusion/placement.h"

namespace tilewright {

namespace {

constexpr double longest_row_bytes = 1 << 20;  // a longer row does not stay on one multiprocessor (or cluster) between two passes
constexpr double shortest_mixed_row = 512, longest_mixed_row = 8192;  // elements: for a block, whose threads keep the sums of their columns

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

/// What a pass over the rows reads that an earlier pass made is kept on the chip between them.
bool stays_on_chip(const Groups &groups, const FusionOptions &options, const std::vector<int> &merged, const GroupPlacement &placement,
                   std::string &reason) {
    const StageGraph &graph = groups.graph();
    const std::vector<bool> depends = depends_on_update(graph, merged);
    const auto [length, rows] = row_shape(graph, placement.space);
    const auto depends_inside = [&](int producer) {
        const auto at = std::lower_bound(merged.begin(), merged.end(), producer);
        return at != merged.end() && *at == producer && depends[at - merged.begin()];
    };
    for (std::size_t i = 0; i < merged.size(); ++i) {
        const bool second_pass =
            depends[i] && length > 1 && (placement.is_whole(graph, merged[i]) || graph.node(merged[i]).form == Form::reduction);
        const std::vector<int> &producers = groups.producers(merged[i]);
        if (!second_pass || std::none_of(producers.begin(), producers.end(), depends_inside)) {
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

}  // namespace

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
    const double length = row_shape(graph, placement.space).first;
    // Measured: rows of whole accesses of 8 bytes, but not of 16, do better apart.
    const bool halves = std::fmod(length, 4) == 0 && std::fmod(length, 8) != 0;
    const bool fits_registers = length >= shortest_mixed_row && length <= longest_mixed_row && !halves;
    if (placement.is_mixed && options.mode != FusionMode::max && !fits_registers) {
        reason = fmt::format("sums over the rows do not fit beside rows of {:.0f} elements in the registers of a block", length);
        return false;
    }
    return options.rereads || options.mode == FusionMode::max || stays_on_chip(groups, options, merged, placement, reason);
}

}  // namespace tilewright
