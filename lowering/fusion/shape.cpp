#include "lowering/fusion/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/error.h"
#include "lowering/fusion/placement.h"
#include "lowering/fusion/small_product.h"

namespace tilewright {

namespace {

bool reduces_innermost(const std::vector<Extent> &space, const std::vector<bool> &reduced) {
    for (std::size_t i = space.size(); i-- > 0;) {
        if (!(space[i] == Extent(1))) {
            return reduced[i];
        }
    }
    return true;
}

class ShapeReader {
public:
    explicit ShapeReader(const Algorithm &algorithm) : graph_(algorithm, false), nodes_(graph_.real_nodes()) {}

    KernelShapeInfo run() {
        multiply_in_rows();
        count();
        if (updates_ > 0) {
            placement_ = place(graph_, nodes_, true);
        } else {
            place_pointwise();
        }
        info_.space = placement_.space.extents;
        info_.is_reduced = placement_.space.reduced;
        info_.shape = shape();
        info_.anchor = anchor();
        for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
            add_role(static_cast<int>(i));
        }
        return std::move(info_);
    }

private:
    /// Several small products side by side: each sum is a row.
    void multiply_in_rows() {
        std::vector<int> products;
        for (int node : nodes_) {
            const StageNode &stage = graph_.node(node);
            if (stage.has_update()) {
                if (stage.form != Form::contraction || !is_small_product(*stage.stage, graph_.algorithm().symbols)) {
                    return;
                }
                products.push_back(node);
            }
        }
        for (std::size_t i = 0; products.size() > 1 && i < products.size(); ++i) {
            graph_.multiply_in_rows(products[i]);
        }
    }

    void count() {
        for (int node : nodes_) {
            const Form form = graph_.node(node).form;
            ++forms_[form];
            if (graph_.node(node).has_update()) {
                ++updates_;
                info_.heavy = graph_.node(node).name();
            }
        }
    }

    void place_pointwise() {
        for (int node : nodes_) {
            const StageNode &stage = graph_.node(node);
            if (!stage.is_output) {
                continue;
            }
            if (placement_.space.extents.empty() || placement_.space.extents.size() < stage.axes.size()) {
                placement_.space.extents = stage.stage->extents;
                placement_.space.reduced.assign(stage.axes.size(), false);
            }
        }
        for (int node : nodes_) {
            if (graph_.node(node).stage->extents == placement_.space.extents) {
                AxisOfVariable axes;
                for (std::size_t i = 0; i < placement_.space.extents.size(); ++i) {
                    axes.push_back(static_cast<int>(i));
                }
                placement_.nodes[node] = axes;
            }
        }
    }

    KernelShape shape() {
        const auto has = [&](Form form) { return forms_.count(form) != 0; };
        if (has(Form::scatter)) {
            return KernelShape::scatter;
        }
        if (has(Form::sort)) {
            return KernelShape::sort;
        }
        if (has(Form::scan)) {
            return KernelShape::scan;
        }
        if (has(Form::contraction)) {
            return has(Form::reduction) && forms_[Form::contraction] > 1 ? KernelShape::streaming : KernelShape::contraction;
        }
        if (has(Form::window)) {
            return KernelShape::window;
        }
        if (!has(Form::reduction)) {
            return KernelShape::pointwise;
        }
        if (placement_.is_mixed) {
            return KernelShape::mixed;
        }
        return reduces_innermost(info_.space, info_.is_reduced) ? KernelShape::rows : KernelShape::columns;
    }

    std::string anchor() const {
        for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
            if (graph_.node(*node).is_output && placement_.is_whole(graph_, *node)) {
                return graph_.node(*node).name();
            }
        }
        if (!info_.heavy.empty()) {
            return info_.heavy;
        }
        return nodes_.empty() ? "" : graph_.node(nodes_.back()).name();
    }

    void add_role(int index) {
        const StageNode &node = graph_.node(index);
        StageRole role;
        role.stage = node.name();
        role.form = node.form;
        role.is_output = node.is_output;
        role.axes.assign(node.axes.size(), -1);
        role.reduction_axes.assign(node.variables.size(), -1);
        if (const auto placed = placement_.nodes.find(index); placed != placement_.nodes.end()) {
            for (std::size_t i = 0; i < placed->second.size(); ++i) {
                (i < node.axes.size() ? role.axes[i] : role.reduction_axes[i - node.axes.size()]) = placed->second[i];
            }
        }
        role.is_inlined = !node.is_output && !node.has_update() && (node.is_view || !is_kept(index));
        info_.stages.push_back(std::move(role));
    }

    /// Worth computing once: several stages read it, or it belongs to a row (or tile) and is read all along it.
    bool is_kept(int index) const {
        const StageNode &node = graph_.node(index);
        if (updates_ == 0 || !placement_.nodes.count(index)) {
            return false;
        }
        const bool is_row_value = !placement_.is_whole(graph_, index) && node.cost > 0;
        return is_row_value || (node.readers.size() > 1 && (node.is_expensive || node.cost > 2));
    }

    StageGraph graph_;
    std::vector<int> nodes_;
    std::map<Form, int> forms_;
    int updates_ = 0;
    GroupPlacement placement_;
    KernelShapeInfo info_;
};

}  // namespace

std::string_view name(KernelShape shape) {
    switch (shape) {
        case KernelShape::pointwise:
            return "pointwise";
        case KernelShape::rows:
            return "rows";
        case KernelShape::columns:
            return "columns";
        case KernelShape::mixed:
            return "mixed";
        case KernelShape::contraction:
            return "contraction";
        case KernelShape::window:
            return "window";
        case KernelShape::streaming:
            return "streaming";
        case KernelShape::scan:
            return "scan";
        case KernelShape::sort:
            return "sort";
        case KernelShape::scatter:
            return "scatter";
    }
    return "?";
}

const StageRole &KernelShapeInfo::role(std::string_view stage) const {
    for (const StageRole &role : stages) {
        if (role.stage == stage) {
            return role;
        }
    }
    internal_error("kernel has no stage {}", stage);
}

KernelShapeInfo kernel_shape(const Algorithm &algorithm) { return ShapeReader(algorithm).run(); }

}  // namespace tilewright
