// Finds attention by its structure: a product, reductions along its columns that can be rescaled as they go, and a second product that
// reduces over those columns.
#include <algorithm>

#include "dsl/algorithm/combiner.h"
#include "lowering/fusion/groups.h"

namespace tilewright {

namespace {

namespace hi = Halide::Internal;

constexpr std::int64_t widest_accumulator = 512;  // columns of the second product that one block keeps in registers

class StreamingSearch {
public:
    StreamingSearch(const StageGraph &graph, const Groups &groups) : graph_(graph), groups_(groups) {}

    std::vector<StreamingCandidate> run() {
        std::vector<StreamingCandidate> found;
        for (int node : groups_.nodes()) {
            if (graph_.node(node).form == Form::contraction) {
                if (auto candidate = from_second_product(node)) {
                    found.push_back(std::move(*candidate));
                }
            }
        }
        return found;
    }

private:
    /// Walks up from an operand of the second product to one first product, through pointwise stages and row reductions only.
    std::optional<StreamingCandidate> from_second_product(int second) const {
        const StageNode &product = graph_.node(second);
        if (product.variables.size() != 1) {
            return std::nullopt;
        }
        for (int operand : groups_.producers(second)) {
            std::set<int> members{second};
            int first = -1;
            int reductions = 0;
            const bool climbs = climb(operand, members, first, reductions) && first >= 0;
            if (climbs) {
                add_sums(first, members, reductions);
            }
            if (climbs && reductions > 0 && is_closed(first, members, second) && joins(first, members, second)) {
                return StreamingCandidate{{members.begin(), members.end()}};
            }
        }
        return std::nullopt;
    }

    /// Takes in everything between `node` and the first product. What does not depend on it stays outside.
    bool climb(int node, std::set<int> &members, int &first, int &reductions) const {
        if (members.count(node)) {
            return true;
        }
        const StageNode &stage = graph_.node(node);
        if (stage.form == Form::contraction) {
            if (first >= 0 && first != node) {
                return false;
            }
            first = node;
            members.insert(node);
            return true;
        }
        if (stage.form != Form::pointwise && stage.form != Form::gather && stage.form != Form::reduction) {
            return false;
        }
        if (stage.form == Form::reduction) {
            if (!is_rescalable(stage)) {
                return false;
            }
            ++reductions;
        }
        members.insert(node);
        bool found = false;
        for (int producer : groups_.producers(node)) {
            if (depends_on_product(producer, 0)) {
                if (!climb(producer, members, first, reductions)) {
                    return false;
                }
                found = true;
            }
        }
        return found;
    }

    /// Whether a product stands above, with only pointwise stages and reductions between.
    bool depends_on_product(int node, int depth) const {
        constexpr int deepest = 24;
        const auto known = depends_.find(node);
        if (known != depends_.end()) {
            return known->second;
        }
        bool depends = graph_.node(node).form == Form::contraction;
        const bool passes = graph_.node(node).form == Form::pointwise || graph_.node(node).form == Form::reduction;
        for (int producer : groups_.producers(node)) {
            depends = depends || (passes && depth < deepest && depends_on_product(producer, depth + 1));
        }
        return depends_[node] = depends;
    }

    static bool is_rescalable(const StageNode &stage) {
        const auto fold = match_fold(stage.stage->func);
        return fold && stage.variables.size() == 1 &&
               (fold->combiner == Combiner::sum || fold->combiner == Combiner::maximum || fold->combiner == Combiner::log_sum_exp);
    }

    /// Reductions along the columns whose result is needed only after the second product (a softmax that divides at the end).
    void add_sums(int first, std::set<int> &members, int &reductions) const {
        for (bool changed = true; changed;) {
            changed = false;
            for (int node : std::set<int>(members)) {
                if (!runs_over_columns(first, node)) {
                    continue;
                }
                for (int reader : groups_.consumers(node)) {
                    const StageNode &stage = graph_.node(reader);
                    if (!members.count(reader) && stage.form == Form::reduction && is_rescalable(stage)) {
                        members.insert(reader);
                        ++reductions;
                        changed = true;
                    }
                }
            }
        }
    }

    bool runs_over_columns(int first, int node) const {
        const std::vector<Extent> &space = graph_.node(first).stage->extents;
        const std::vector<Extent> &extents = graph_.node(node).stage->extents;
        return extents.size() == space.size() && !extents.empty() && extents.back() == space.back() && !(extents.back() == Extent(1));
    }

    /// Nothing that runs over the columns is stored; values of rows may be.
    bool is_closed(int first, const std::set<int> &members, int second) const {
        for (int node : members) {
            if (node == second) {
                continue;
            }
            const auto &readers = groups_.consumers(node);
            if (groups_.ends_group(node)) {
                return false;
            }
            if (runs_over_columns(first, node) &&
                (groups_.is_read_outside(node) ||
                 !std::all_of(readers.begin(), readers.end(), [&](int reader) { return members.count(reader); }))) {
                return false;
            }
        }
        return true;
    }

    /// The reductions run along the axis that the second product sums over, and its accumulator fits.
    bool joins(int first, const std::set<int> &members, int second) const {
        const Extent columns = graph_.node(first).stage->extents.empty() ? Extent(1) : graph_.node(first).stage->extents.back();
        for (int node : members) {
            const StageNode &stage = graph_.node(node);
            if ((stage.form == Form::reduction || node == second) && !(stage.variables[0].extent == columns)) {
                return false;
            }
        }
        const Extent width = graph_.node(second).stage->extents.back();
        return width.is_constant() && width.value() <= widest_accumulator;
    }

    const StageGraph &graph_;
    const Groups &groups_;
    mutable std::map<int, bool> depends_;
};

}  // namespace

std::vector<StreamingCandidate> find_streaming(const StageGraph &graph, const Groups &groups) {
    return StreamingSearch(graph, groups).run();
}

}  // namespace tilewright
