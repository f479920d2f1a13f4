// Groups of stages while they are being formed: which node is in which group, what a group would store, and whether a merge would close
// a cycle.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lowering/fusion/fusion.h"
#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// What a group holds besides pointwise stages.
struct GroupContent {
    int reductions = 0, contractions = 0, windows = 0, scans = 0, sorts = 0, scatters = 0;
    bool streams = false;  ///< products joined by reductions
    int updates() const { return reductions + contractions + windows + scans + sorts + scatters; }
    bool is_pointwise() const { return updates() == 0; }
    bool is_rows() const { return reductions > 0 && updates() == reductions; }
    /// One product, and reductions along its rows.
    bool finishes_rows() const { return contractions == 1 && reductions > 0 && updates() == 1 + reductions && !streams; }
};

struct Group {
    std::vector<int> nodes;  ///< in topological order
    GroupContent content;
    bool is_alive = true;
};

class Groups {
public:
    /// Every node of the list begins as a group of its own. Edges from `ends` are never merged.
    Groups(const StageGraph &graph, std::vector<int> nodes, std::set<int> ends = {});

    const StageGraph &graph() const { return graph_; }
    const std::vector<int> &nodes() const { return nodes_; }
    int group_of(int node) const { return group_of_[node]; }  ///< InternalError-free: nodes of the list only
    bool has(int node) const { return group_of_[node] >= 0; }
    const Group &group(int index) const { return groups_[index]; }
    std::vector<int> alive() const;  ///< groups in an order in which each stands after those it reads

    /// Nodes outside that read a node, through virtual stages; only those of the list.
    const std::vector<int> &consumers(int node) const { return consumers_[node]; }
    const std::vector<int> &producers(int node) const { return producers_[node]; }
    bool ends_group(int node) const { return ends_.count(node) != 0; }

    /// Nodes of the merged list whose value is stored: outputs, and those that others read.
    std::vector<int> stored_nodes(const std::vector<int> &merged) const;
    /// For each node of the graph whether it is one of these.
    std::vector<bool> among_all(const std::vector<int> &nodes) const;
    /// Nodes that are stored because a kernel outside the list reads them, or because they are outputs.
    bool is_read_outside(int node) const;
    std::vector<int> merged_nodes(int a, int b) const;
    /// Whether a path leads from `from` to `to` through another group.
    bool has_detour(int from, int to) const;
    bool has_path(int from, int to) const;
    /// `into` takes the other's nodes; the group that is left is returned.
    int merge(int into, int other);
    /// A pointwise node leaves its group and stands alone again.
    void split_off(int node);
    void mark_streaming(int group) { groups_[group].content.streams = true; }

    std::set<int> consumer_groups(int group) const;
    std::set<int> producer_groups(int group) const;

private:
    bool reaches(std::vector<int> pending, int to) const;

    const StageGraph &graph_;
    std::vector<int> nodes_;
    std::set<int> ends_;
    std::set<int> outside_readers_;
    std::vector<int> group_of_;                            ///< for each node of the graph; -1 for one that is not in the list
    std::vector<std::vector<int>> consumers_, producers_;  ///< for each node of the graph
    std::vector<Group> groups_;
};

/// Forms groups by the rules; records a reason for each edge between real nodes.
class Grouper {
public:
    Grouper(const StageGraph &graph, const FusionOptions &options, std::vector<int> nodes, std::set<int> ends = {});
    Groups run();
    const std::map<std::pair<int, int>, std::string> &reasons() const { return reasons_; }

private:
    void stream();
    void add_epilogues();
    void return_epilogues(int heavy);
    void gate();
    bool multiplies_narrow(int product) const;
    void merge_rows();
    void merge_pointwise();
    void add_prologues();
    void merge_edges();
    void merge_siblings();
    bool try_edge(int producer, int consumer);
    bool try_merge(int a, int b, std::string &reason);

    const StageGraph &graph_;
    FusionOptions options_;
    Groups groups_;
    std::map<std::pair<int, int>, std::string> reasons_;
};

/// Whether the group of a producer may take in a group that reads it; the reason, in words, either way. `a` computes, `b` reads.
bool may_fuse(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason);
/// The same for two groups of which neither reads the other.
bool may_join(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason);
/// Groups (first product, row reductions, second product) that can become one kernel which streams over the first product's columns.
struct StreamingCandidate {
    std::vector<int> nodes;
};
std::vector<StreamingCandidate> find_streaming(const StageGraph &graph, const Groups &groups);

/// The number of elements for typical values of the symbols.
double typical_size(const StageGraph &graph, const std::vector<Extent> &extents);

}  // namespace tilewright
