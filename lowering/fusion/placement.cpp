#include "lowering/fusion/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::vector<IndexAxis> variables_of(const StageNode &node) {
    std::vector<IndexAxis> all = node.axes;
    all.insert(all.end(), node.variables.begin(), node.variables.end());
    return all;
}

/// The place of a plain variable in a list, or -1.
int variable_place(const Expr &index, const std::vector<IndexAxis> &variables) {
    const auto *variable = index.as<hi::Variable>();
    if (!variable) {
        return -1;
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].name == variable->name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

/// Reductions whose variables are axes of the group's space; those of products, windows, scans and scatters are their own affair.
bool reduces_rows(const StageNode &node) { return node.form == Form::reduction; }

class Placer {
public:
    Placer(const StageGraph &graph, const std::vector<int> &nodes, bool allow_mixed)
        : graph_(graph), nodes_(nodes), allow_mixed_(allow_mixed), depends_(depends_on_update(graph, nodes)) {}

    GroupPlacement run() {
        begin_with(first_update());
        for (bool changed = true; changed;) {
            changed = false;
            for (int node : nodes_) {
                changed |= propagate(node);
            }
        }
        for (std::size_t i = 0; i < nodes_.size() && result_.refusal.empty(); ++i) {
            if (depends_[i]) {
                complete(nodes_[i]);
            }
        }
        for (std::size_t i = 0; i < nodes_.size() && result_.refusal.empty(); ++i) {
            if (depends_[i]) {
                check(nodes_[i]);
            }
        }
        drop_incomplete();
        return std::move(result_);
    }

private:
    /// Of a product whose rows are reduced the first reduction: it says along which axis.
    int first_update() const {
        const auto is_product = [&](int node) { return graph_.node(node).form == Form::contraction; };
        const bool one_product = std::count_if(nodes_.begin(), nodes_.end(), is_product) == 1;
        int first = -1;
        for (int node : nodes_) {
            if (graph_.node(node).has_update() && (first < 0 || (one_product && is_product(first) && reduces_rows(graph_.node(node))))) {
                first = node;
            }
        }
        return first < 0 ? nodes_.front() : first;
    }

    void begin_with(int index) {
        const StageNode &node = graph_.node(index);
        const std::vector<IndexAxis> variables = variables_of(node);
        AxisOfVariable axes(variables.size(), -1);
        std::vector<int> order;
        for (std::size_t i = 0; i < variables.size(); ++i) {
            order.push_back(static_cast<int>(i));
        }
        if (!reduces_rows(node)) {
            order.resize(node.axes.size());
        } else if (const auto read_order = order_of_whole_read(node, variables)) {
            order = *read_order;
        }
        for (int variable : order) {
            axes[variable] = static_cast<int>(result_.space.extents.size());
            result_.space.extents.push_back(variables[variable].extent);
            result_.space.reduced.push_back(variable >= static_cast<int>(node.axes.size()));
        }
        result_.nodes[index] = axes;
    }

    /// The order in which a read at plain variables names all of them, if there is one.
    static std::optional<std::vector<int>> order_of_whole_read(const StageNode &node, const std::vector<IndexAxis> &variables) {
        for (const ResolvedRead &read : node.reads) {
            std::vector<int> order;
            for (const Expr &index : read.indices) {
                order.push_back(variable_place(index, variables));
            }
            const std::set<int> distinct(order.begin(), order.end());
            if (order.size() == variables.size() && distinct.size() == order.size() && !distinct.count(-1)) {
                return order;
            }
        }
        return std::nullopt;
    }

    /// Carries places over from a node to what it reads and back. Tensors from outside link their readers where they have the whole rank.
    bool propagate(int index) {
        const StageNode &node = graph_.node(index);
        const std::vector<IndexAxis> variables = variables_of(node);
        bool changed = false;
        for (const EffectiveRead &read : graph_.effective_reads(index)) {
            const bool inside = read.producer >= 0 && std::binary_search(nodes_.begin(), nodes_.end(), read.producer);
            if (!inside && read.indices.size() < result_.space.extents.size()) {
                continue;
            }
            const std::pair<int, int> tensor(read.producer, read.input);
            AxisOfVariable &tensor_axes = inside ? result_.nodes[read.producer] : outside_[tensor];
            if (tensor_axes.empty()) {
                tensor_axes.assign(inside ? variables_of(graph_.node(read.producer)).size() : read.indices.size(), -1);
            }
            AxisOfVariable &own_axes = result_.nodes[index];
            if (own_axes.empty()) {
                own_axes.assign(variables.size(), -1);
            }
            for (std::size_t i = 0; i < read.indices.size(); ++i) {
                const int variable = variable_place(read.indices[i], variables);
                if (variable < 0) {
                    continue;
                }
                changed |= carry(tensor_axes, i, own_axes, variable, variables[variable].extent);
                changed |= carry(own_axes, variable, tensor_axes, i, variables[variable].extent);
            }
        }
        return changed;
    }

    bool carry(const AxisOfVariable &from, std::size_t from_place, AxisOfVariable &to, std::size_t to_place, const Extent &extent) const {
        const int axis = from[from_place];
        if (axis < 0 || to[to_place] >= 0 || !(result_.space.extents[axis] == extent) ||
            std::find(to.begin(), to.end(), axis) != to.end()) {
            return false;
        }
        to[to_place] = axis;
        return true;
    }

    /// Gives the variables that nothing placed the free axes of the same extent, in order.
    void complete(int index) {
        const StageNode &node = graph_.node(index);
        const std::vector<IndexAxis> variables = variables_of(node);
        AxisOfVariable &axes = result_.nodes[index];
        axes.resize(variables.size(), -1);
        const std::size_t placed_variables = reduces_rows(node) ? variables.size() : node.axes.size();
        std::size_t next = 0;
        for (std::size_t i = 0; i < placed_variables; ++i) {
            if (axes[i] >= 0) {
                continue;
            }
            std::size_t axis = next;
            while (axis < result_.space.extents.size() && (std::find(axes.begin(), axes.end(), static_cast<int>(axis)) != axes.end() ||
                                                           !(result_.space.extents[axis] == variables[i].extent))) {
                ++axis;
            }
            if (axis == result_.space.extents.size()) {
                if (variables[i].extent == Extent(1)) {
                    continue;
                }
                result_.refusal = fmt::format("{} runs over {} {} of extent {}, which has no place among the group's {}", node.name(),
                                              i < node.axes.size() ? "an axis" : "terms", variables[i].name,
                                              variables[i].extent.to_string(), to_string(result_.space.extents));
                return;
            }
            axes[i] = static_cast<int>(axis);
            next = axis;
        }
        check_coverage(index);
    }

    /// A node covers the whole space or all of its rows; a reduction runs along the reduced axes.
    void check_coverage(int index) {
        const StageNode &node = graph_.node(index);
        const AxisOfVariable &axes = result_.nodes[index];
        std::set<int> arguments(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(node.axes.size()));
        std::set<int> variables(axes.begin() + static_cast<std::ptrdiff_t>(node.axes.size()), axes.end());
        arguments.erase(-1);
        variables.erase(-1);
        bool rows_covered = true;
        std::size_t reduced_covered = 0, reduced_count = 0;
        bool reduces_rows_only = true, reduces_reduced_only = true;
        for (std::size_t axis = 0; axis < result_.space.extents.size(); ++axis) {
            const bool has = arguments.count(static_cast<int>(axis)) || result_.space.extents[axis] == Extent(1);
            const bool reduces = variables.count(static_cast<int>(axis));
            reduced_count += result_.space.reduced[axis];
            if (result_.space.reduced[axis]) {
                reduced_covered += has;
                reduces_rows_only &= !reduces;
            } else {
                rows_covered &= has;
                reduces_reduced_only &= !reduces;
            }
        }
        if (reduces_rows(node) && !reduces_reduced_only) {
            result_.is_mixed = true;
            if (!allow_mixed_ || !reduces_rows_only || reduced_covered != reduced_count) {
                result_.refusal = fmt::format("{} reduces along the rows of the others", node.name());
            }
            return;
        }
        const bool is_column_value = result_.is_mixed && !reduces_rows(node) && !node.has_update() && arguments.size() == reduced_covered &&
                                     reduced_covered == reduced_count;
        if (is_column_value) {
            return;  // made of column sums alone
        }
        if (!rows_covered || (!reduces_rows(node) && reduced_covered != 0 && reduced_covered != reduced_count && !node.has_update())) {
            result_.refusal = fmt::format("{} covers only a part of the group's rows", node.name());
        }
        if (reduces_rows(node) && variables.size() + reduced_covered < reduced_count) {
            result_.refusal = fmt::format("{} reduces only a part of a row", node.name());
        }
    }

    /// What depends on an update is read at the reader's own place. A pointwise stage may be read anywhere in the reader's own row (a
    /// gather along it): it is made again there from the row's values.
    void check(int index) {
        const StageNode &node = graph_.node(index);
        const std::vector<IndexAxis> variables = variables_of(node);
        const AxisOfVariable &own = result_.nodes[index];
        for (const EffectiveRead &read : graph_.effective_reads(index)) {
            const auto inside = std::lower_bound(nodes_.begin(), nodes_.end(), read.producer);
            if (read.producer < 0 || inside == nodes_.end() || *inside != read.producer || !depends_[inside - nodes_.begin()]) {
                continue;
            }
            const AxisOfVariable &producer = result_.nodes[read.producer];
            const bool is_pointwise = !graph_.node(read.producer).has_update();
            for (std::size_t i = 0; i < read.indices.size(); ++i) {
                if (is_pointwise && producer[i] >= 0 && result_.space.reduced[producer[i]]) {
                    continue;
                }
                const int variable = variable_place(read.indices[i], variables);
                const bool is_only_place = graph_.node(read.producer).stage->extents[i] == Extent(1);
                if (!is_only_place && (variable < 0 || own[variable] != producer[i])) {
                    result_.refusal =
                        fmt::format("{} reads {} at another place than its own", node.name(), graph_.node(read.producer).name());
                    return;
                }
            }
        }
    }

    void drop_incomplete() {
        for (auto it = result_.nodes.begin(); it != result_.nodes.end();) {
            const StageNode &node = graph_.node(it->first);
            bool complete = !it->second.empty() || node.axes.empty();
            for (std::size_t i = 0; complete && i < node.axes.size(); ++i) {
                complete = it->second[i] >= 0 || node.axes[i].extent == Extent(1);
            }
            it = complete ? std::next(it) : result_.nodes.erase(it);
        }
    }

    const StageGraph &graph_;
    const std::vector<int> &nodes_;
    const bool allow_mixed_;
    const std::vector<bool> depends_;
    GroupPlacement result_;
    std::map<std::pair<int, int>, AxisOfVariable> outside_;
};

}  // namespace

bool GroupPlacement::is_whole(const StageGraph &graph, int node) const {
    const auto found = nodes.find(node);
    if (found == nodes.end()) {
        return false;
    }
    const std::size_t arguments = graph.node(node).axes.size();
    for (std::size_t axis = 0; axis < space.extents.size(); ++axis) {
        const auto end = found->second.begin() + static_cast<std::ptrdiff_t>(arguments);
        if (std::find(found->second.begin(), end, static_cast<int>(axis)) == end && !(space.extents[axis] == Extent(1))) {
            return false;
        }
    }
    return true;
}

GroupPlacement place(const StageGraph &graph, const std::vector<int> &nodes, bool allow_mixed) {
    return Placer(graph, nodes, allow_mixed).run();
}

std::vector<bool> depends_on_update(const StageGraph &graph, const std::vector<int> &nodes) {
    std::vector<bool> depends(nodes.size(), false);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        depends[i] = graph.node(nodes[i]).has_update();
        for (const EffectiveRead &read : graph.effective_reads(nodes[i])) {
            const auto found = std::lower_bound(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i), read.producer);
            if (read.producer >= 0 && found != nodes.begin() + static_cast<std::ptrdiff_t>(i) && *found == read.producer) {
                depends[i] = depends[i] || depends[found - nodes.begin()];
            }
        }
    }
    return depends;
}

}  // namespace tilewright
