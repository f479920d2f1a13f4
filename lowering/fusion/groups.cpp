#include "lowering/fusion/groups.h"

#include <algorithm>
#include <queue>

#include "dsl/error.h"

namespace tilewright {

namespace {

GroupContent content_of(const StageNode &node) {
    GroupContent content;
    switch (node.form) {
        case Form::pointwise:
        case Form::gather:
            break;
        case Form::reduction:
            content.reductions = 1;
            break;
        case Form::contraction:
            content.contractions = 1;
            break;
        case Form::window:
            content.windows = 1;
            break;
        case Form::scan:
            content.scans = 1;
            break;
        case Form::sort:
            content.sorts = 1;
            break;
        case Form::scatter:
            content.scatters = 1;
            break;
    }
    return content;
}

void add_content(GroupContent &to, const GroupContent &from) {
    to.reductions += from.reductions;
    to.contractions += from.contractions;
    to.windows += from.windows;
    to.scans += from.scans;
    to.sorts += from.sorts;
    to.scatters += from.scatters;
    to.streams |= from.streams;
}

}  // namespace

Groups::Groups(const StageGraph &graph, std::vector<int> nodes, std::set<int> ends)
    : graph_(graph),
      nodes_(std::move(nodes)),
      ends_(std::move(ends)),
      group_of_(graph.nodes().size(), -1),
      consumers_(graph.nodes().size()),
      producers_(graph.nodes().size()) {
    for (int node : nodes_) {
        group_of_[node] = static_cast<int>(groups_.size());
        groups_.push_back({{node}, content_of(graph.node(node)), true});
    }
    for (int node : graph.real_nodes()) {
        for (const EffectiveRead &read : graph.effective_reads(node)) {
            if (read.producer < 0 || !has(read.producer)) {
                continue;
            }
            if (!has(node)) {
                outside_readers_.insert(read.producer);
                continue;
            }
            auto &list = consumers_[read.producer];
            if (list.empty() || list.back() != node) {
                list.push_back(node);
                producers_[node].push_back(read.producer);
            }
        }
    }
    for (auto *lists : {&consumers_, &producers_}) {
        for (std::vector<int> &list : *lists) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
    }
}

std::vector<int> Groups::alive() const {
    // Kahn's order; of those that are ready the one with the earliest node goes first, so that the order follows the program's.
    std::map<int, int> missing;
    std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> ready;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (groups_[i].is_alive) {
            missing[static_cast<int>(i)] = static_cast<int>(producer_groups(static_cast<int>(i)).size());
        }
    }
    for (const auto &[group, count] : missing) {
        if (count == 0) {
            ready.emplace(groups_[group].nodes.front(), group);
        }
    }
    std::vector<int> order;
    while (!ready.empty()) {
        const int group = ready.top().second;
        ready.pop();
        order.push_back(group);
        for (int consumer : consumer_groups(group)) {
            if (--missing[consumer] == 0) {
                ready.emplace(groups_[consumer].nodes.front(), consumer);
            }
        }
    }
    internal_assert(order.size() == missing.size(), "groups read each other in a circle");
    return order;
}

bool Groups::is_read_outside(int node) const { return graph_.node(node).is_output || outside_readers_.count(node); }

std::vector<bool> Groups::among_all(const std::vector<int> &nodes) const {
    std::vector<bool> inside(graph_.nodes().size());
    for (const int node : nodes) {
        inside[node] = true;
    }
    return inside;
}

std::vector<int> Groups::stored_nodes(const std::vector<int> &merged) const {
    std::vector<int> stored;
    const std::vector<bool> inside = among_all(merged);
    for (int node : merged) {
        const auto &readers = consumers(node);
        const bool leaves = std::any_of(readers.begin(), readers.end(), [&](int reader) { return !inside[reader]; });
        if (leaves || is_read_outside(node)) {
            stored.push_back(node);
        }
    }
    return stored;
}

std::vector<int> Groups::merged_nodes(int a, int b) const {
    std::vector<int> merged;
    std::merge(groups_[a].nodes.begin(), groups_[a].nodes.end(), groups_[b].nodes.begin(), groups_[b].nodes.end(),
               std::back_inserter(merged));
    return merged;
}

std::set<int> Groups::consumer_groups(int group) const {
    std::set<int> result;
    for (int node : groups_[group].nodes) {
        for (int consumer : consumers(node)) {
            result.insert(group_of(consumer));
        }
    }
    result.erase(group);
    return result;
}

std::set<int> Groups::producer_groups(int group) const {
    std::set<int> result;
    for (int node : groups_[group].nodes) {
        for (int producer : producers(node)) {
            result.insert(group_of(producer));
        }
    }
    result.erase(group);
    return result;
}

bool Groups::reaches(std::vector<int> pending, int to) const {
    // Nodes are numbered in topological order: a path into `to` never passes a group whose first node is behind to's last.
    const int last = groups_[to].nodes.back();
    std::set<int> seen(pending.begin(), pending.end());
    while (!pending.empty()) {
        const int group = pending.back();
        pending.pop_back();
        if (group == to) {
            return true;
        }
        if (groups_[group].nodes.front() > last) {
            continue;
        }
        for (int next : consumer_groups(group)) {
            if (seen.insert(next).second) {
                pending.push_back(next);
            }
        }
    }
    return false;
}

bool Groups::has_detour(int from, int to) const {
    std::vector<int> pending;
    for (int consumer : consumer_groups(from)) {
        if (consumer != to) {
            pending.push_back(consumer);
        }
    }
    return reaches(std::move(pending), to);
}

bool Groups::has_path(int from, int to) const {
    const std::set<int> consumers = consumer_groups(from);
    return reaches({consumers.begin(), consumers.end()}, to);
}

int Groups::merge(int into, int other) {
    groups_[into].nodes = merged_nodes(into, other);
    for (int node : groups_[other].nodes) {
        group_of_[node] = into;
    }
    add_content(groups_[into].content, groups_[other].content);
    groups_[other].is_alive = false;
    groups_[other].nodes.clear();
    return into;
}

void Groups::split_off(int node) {
    Group &from = groups_[group_of(node)];
    internal_assert(!graph_.node(node).has_update() && from.nodes.size() > 1, "stage {} cannot leave its group", graph_.node(node).name());
    from.nodes.erase(std::find(from.nodes.begin(), from.nodes.end(), node));
    group_of_[node] = static_cast<int>(groups_.size());
    groups_.push_back({{node}, {}, true});
}

double typical_size(const StageGraph &graph, const std::vector<Extent> &extents) {
    constexpr std::int64_t typical_symbol = 64;
    SymbolValues symbols;
    for (const auto &[symbol, range] : graph.algorithm().symbols) {
        symbols[symbol] = std::clamp(typical_symbol, range.min, range.max);
    }
    double size = 1;
    for (const Extent &extent : extents) {
        size *= static_cast<double>(extent.evaluate(symbols));
    }
    return size;
}

}  // namespace tilewright
