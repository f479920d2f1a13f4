// The order in which merges are tried. Products take their epilogues first, for that saves storing the product; then rows gather around
// their reductions; then what is left is computed where it is read.
#include <fmt/format.h>

#include <algorithm>

#include "lowering/fusion/groups.h"
#include "lowering/fusion/small_product.h"

namespace tilewright {

Grouper::Grouper(const StageGraph &graph, const FusionOptions &options, std::vector<int> nodes, std::set<int> ends)
    : graph_(graph), options_(options), groups_(graph, std::move(nodes), std::move(ends)) {}

Groups Grouper::run() {
    if (options_.mode != FusionMode::none) {
        if (options_.streaming || options_.mode == FusionMode::max) {
            stream();
        }
        add_epilogues();
        gate();
        merge_rows();
        merge_pointwise();
        add_prologues();
        merge_edges();
        merge_siblings();
        merge_edges();
    }
    for (int node : groups_.nodes()) {
        for (int consumer : groups_.consumers(node)) {
            reasons_.try_emplace({node, consumer}, groups_.group_of(node) == groups_.group_of(consumer)
                                                       ? "they meet in one kernel through others"
                                                       : "fusion is off");
        }
    }
    return std::move(groups_);
}

bool Grouper::try_merge(int a, int b, std::string &reason) {
    if (!may_fuse(groups_, options_, a, b, reason)) {
        return false;
    }
    groups_.merge(std::min(a, b), std::max(a, b));
    return true;
}

bool Grouper::try_edge(int producer, int consumer) {
    const int a = groups_.group_of(producer);
    const int b = groups_.group_of(consumer);
    if (a == b) {
        return false;
    }
    std::string reason;
    const bool fused = try_merge(a, b, reason);
    reasons_[{producer, consumer}] = reason;
    return fused;
}

void Grouper::stream() {
    for (const StreamingCandidate &candidate : find_streaming(graph_, groups_)) {
        // Candidates may overlap; a group that streams already is left alone.
        if (std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                        [&](int node) { return groups_.group(groups_.group_of(node)).nodes.size() > 1; })) {
            continue;
        }
        int group = groups_.group_of(candidate.nodes.front());
        for (int node : candidate.nodes) {
            const int other = groups_.group_of(node);
            group = other == group ? group : groups_.merge(group, other);
        }
        groups_.mark_streaming(group);
        for (int node : candidate.nodes) {
            for (int consumer : groups_.consumers(node)) {
                if (groups_.group_of(consumer) == group) {
                    reasons_[{node, consumer}] = "two products joined by reductions over the first one's columns: streamed";
                }
            }
        }
    }
}

void Grouper::add_epilogues() {
    for (int heavy : groups_.nodes()) {
        const Form form = graph_.node(heavy).form;
        if (form != Form::contraction && form != Form::window && form != Form::scan) {
            continue;
        }
        // The group grows downwards: what it takes in may have readers that it takes in next.
        for (bool changed = true; changed;) {
            changed = false;
            const std::vector<int> members = groups_.group(groups_.group_of(heavy)).nodes;
            for (int node : members) {
                for (int consumer : groups_.consumers(node)) {
                    if (groups_.group(groups_.group_of(consumer)).content.is_pointwise()) {
                        changed |= try_edge(node, consumer);
                    }
                }
            }
        }
        if (options_.mode != FusionMode::max) {
            return_epilogues(heavy);
        }
    }
}

void Grouper::return_epilogues(int heavy) {
    // From the last stage upwards: one that is stored for rows or pointwise kernels only, and is made of values that are stored
    // as well, is cheaper to compute there.
    const std::vector<int> members = groups_.group(groups_.group_of(heavy)).nodes;
    for (auto node = members.rbegin(); node != members.rend(); ++node) {
        const std::vector<int> current = groups_.group(groups_.group_of(heavy)).nodes;
        const std::vector<int> stored = groups_.stored_nodes(current);
        const auto is_stored = [&](int other) { return std::binary_search(stored.begin(), stored.end(), other); };
        const auto is_inside = [&](int other) { return std::binary_search(current.begin(), current.end(), other); };
        const auto &consumers = groups_.consumers(*node);
        const auto &producers = groups_.producers(*node);
        const bool leaves = !graph_.node(*node).has_update() && !groups_.is_read_outside(*node) && is_stored(*node) &&
                            std::none_of(consumers.begin(), consumers.end(), is_inside) &&
                            std::all_of(consumers.begin(), consumers.end(), [&](int consumer) {
                                const GroupContent &content = groups_.group(groups_.group_of(consumer)).content;
                                return content.is_pointwise() || content.is_rows();
                            });
        const bool is_made_of_stored =
            std::all_of(producers.begin(), producers.end(), [&](int producer) { return !is_inside(producer) || is_stored(producer); });
        if (leaves && is_made_of_stored) {
            groups_.split_off(*node);
            for (int producer : producers) {
                reasons_[{producer, *node}] = "what it is made of is stored anyway; its readers compute it";
            }
        }
    }
}

/// Matrix units multiply types of 16 bits: there, storing a product costs more than a second one beside it in registers.
bool Grouper::multiplies_narrow(int product) const {
    const std::vector<EffectiveRead> &reads = graph_.effective_reads(product);
    return std::all_of(reads.begin(), reads.end(), [&](const EffectiveRead &read) {
        return read.producer >= 0 ? graph_.node(read.producer).stage->func.types()[read.tuple_index].bits() == 16
                                  : size_in_bytes(graph_.algorithm().inputs[read.input].meta.dtype) == 2;
    });
}

void Grouper::gate() {
    const auto product_of = [&](int group) {
        const std::vector<int> &nodes = groups_.group(group).nodes;
        return *std::find_if(nodes.begin(), nodes.end(), [&](int node) { return graph_.node(node).form == Form::contraction; });
    };
    const auto is_small = [&](int group) {
        const std::vector<int> &nodes = groups_.group(group).nodes;
        return options_.split_columns && std::all_of(nodes.begin(), nodes.end(), [&](int node) {
                   return !graph_.node(node).has_update() || is_small_product(*graph_.node(node).stage, graph_.algorithm().symbols);
               });
    };
    const auto operands = [&](int product) {
        std::set<std::pair<int, int>> tensors;
        for (const EffectiveRead &read : graph_.effective_reads(product)) {
            tensors.emplace(read.producer, read.input);
        }
        return tensors;
    };
    for (int node : groups_.nodes()) {
        for (int producer : groups_.producers(node)) {
            const int a = groups_.group_of(producer), b = groups_.group_of(node);
            const auto is_product = [&](int group) {
                const GroupContent &content = groups_.group(group).content;
                return content.contractions > 0 && content.updates() == content.contractions;
            };
            if (a == b || !is_product(a) || !is_product(b) || groups_.consumer_groups(a) != std::set<int>{b} || groups_.has_detour(a, b)) {
                continue;
            }
            const int first = product_of(a), second = product_of(b);
            const bool are_small = is_small(a) && is_small(b);
            const bool are_two = groups_.group(a).content.contractions + groups_.group(b).content.contractions == 2;
            if (!are_small && (!are_two || (!options_.gating && options_.mode != FusionMode::max && !multiplies_narrow(first)))) {
                continue;
            }
            const std::set<std::pair<int, int>> one = operands(first), other = operands(second);
            const bool shares = std::any_of(one.begin(), one.end(), [&](const auto &tensor) { return other.count(tensor) != 0; });
            const bool is_stored = std::any_of(groups_.group(a).nodes.begin(), groups_.group(a).nodes.end(),
                                               [&](int member) { return groups_.is_read_outside(member); });
            const Stage &one_stage = *graph_.node(first).stage, &other_stage = *graph_.node(second).stage;
            if (shares && !is_stored && one_stage.extents == other_stage.extents &&
                (!are_small || one_stage.reduction_extents == other_stage.reduction_extents)) {
                groups_.merge(std::min(a, b), std::max(a, b));
                reasons_[{producer, node}] = "products that share an operand meet here";
            }
        }
    }
}

void Grouper::merge_rows() {
    // Twice: a reduction may find its partner only after the stages between have joined one of them.
    for (int round = 0; round < 3; ++round) {
        bool changed = false;
        for (int consumer : groups_.nodes()) {
            for (int producer : groups_.producers(consumer)) {
                const GroupContent &a = groups_.group(groups_.group_of(producer)).content;
                const GroupContent &b = groups_.group(groups_.group_of(consumer)).content;
                const bool rows_first = a.is_rows() && (b.is_rows() || b.is_pointwise());
                if (rows_first || (a.is_pointwise() && b.is_rows())) {
                    changed |= try_edge(producer, consumer);
                }
            }
        }
        if (!changed) {
            break;
        }
    }
}

void Grouper::merge_pointwise() {
    // Before products take prologues: a chain is worth one only whole, or its inputs are stored instead of its result.
    for (bool changed = true; changed;) {
        changed = false;
        for (int consumer : groups_.nodes()) {
            for (int producer : groups_.producers(consumer)) {
                const bool both = groups_.group(groups_.group_of(producer)).content.is_pointwise() &&
                                  groups_.group(groups_.group_of(consumer)).content.is_pointwise();
                changed |= both && try_edge(producer, consumer);
            }
        }
    }
}

void Grouper::add_prologues() {
    for (auto consumer = groups_.nodes().rbegin(); consumer != groups_.nodes().rend(); ++consumer) {
        if (!graph_.node(*consumer).has_update()) {
            continue;
        }
        for (bool changed = true; changed;) {
            changed = false;
            const std::vector<int> members = groups_.group(groups_.group_of(*consumer)).nodes;
            for (int member : members) {
                for (int producer : groups_.producers(member)) {
                    if (groups_.group(groups_.group_of(producer)).content.is_pointwise()) {
                        changed |= try_edge(producer, member);
                    }
                }
            }
        }
    }
}

void Grouper::merge_edges() {
    for (bool changed = true; changed;) {
        changed = false;
        for (int consumer : groups_.nodes()) {
            for (int producer : groups_.producers(consumer)) {
                changed |= try_edge(producer, consumer);
            }
        }
    }
}

void Grouper::merge_siblings() {
    // Groups that read one tensor, each tried with its neighbour in the order of the program: near-linear, and neighbours are what is
    // alike.
    std::map<std::pair<int, int>, std::vector<int>> readers;
    for (int node : groups_.nodes()) {
        for (const EffectiveRead &read : graph_.effective_reads(node)) {
            auto &list = readers[{read.producer, read.input}];
            if (read.indices.size() > 1 && (list.empty() || list.back() != node)) {
                list.push_back(node);
            }
        }
    }
    for (const auto &[tensor, nodes] : readers) {
        for (std::size_t i = 1; i < nodes.size(); ++i) {
            const int a = groups_.group_of(nodes[i - 1]);
            const int b = groups_.group_of(nodes[i]);
            std::string reason;
            if (a != b && may_join(groups_, options_, a, b, reason)) {
                groups_.merge(std::min(a, b), std::max(a, b));
            }
        }
    }
}

}  // namespace tilewright
