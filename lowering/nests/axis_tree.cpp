#include "lowering/nests/axis_tree.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/tile_ir/inward_tail.h"

namespace tilewright {
namespace {

class TreeBuilder {
public:
    TreeBuilder(const ScheduledStage &stage, const std::string &prefix, bool only_reductions)
        : stage_(stage), prefix_(prefix), only_reductions_(only_reductions) {}

    AxisTree run() {
        mark_pure();
        for (std::size_t i = 0; i < stage_.axes.size(); ++i) {
            const LoopAxis &axis = stage_.axes[i];
            if (pure_[i] && !inside_pure(static_cast<int>(i)) && wanted(axis)) {
                add_axis(static_cast<int>(i));
            }
        }
        bind_units();
        for (std::size_t i = 0; i < stage_.axes.size(); ++i) {
            const LoopAxis &axis = stage_.axes[i];
            if (axis.origin == LoopAxis::Origin::root && wanted(axis)) {
                tree_.roots[axis.name] = expression(static_cast<int>(i));
                guard_root(static_cast<int>(i));
            }
        }
        for (int index : stage_.loop_order) {
            auto found = place_of_.find(index);
            if (found != place_of_.end()) {
                const tile::Level level = tree_.axes[found->second.axis].leaves[found->second.leaf].level;
                if (level == tile::Level::loop || level == tile::Level::unroll || level == tile::Level::vector) {
                    tree_.loops.push_back(found->second);
                }
            }
        }
        return std::move(tree_);
    }

private:
    bool wanted(const LoopAxis &axis) const { return axis.reduction || !only_reductions_; }
    bool is_split(const LoopAxis &axis) const { return axis.children[1] >= 0; }
    bool is_fused(const LoopAxis &axis) const { return axis.children[0] >= 0 && axis.children[1] < 0; }

    /// Children come after their parents, so one pass from the end settles who is only split.
    void mark_pure() {
        pure_.assign(stage_.axes.size(), true);
        for (int i = static_cast<int>(stage_.axes.size()) - 1; i >= 0; --i) {
            const LoopAxis &axis = stage_.axes[i];
            if (is_split(axis)) {
                pure_[i] = pure_[axis.children[0]] && pure_[axis.children[1]];
            } else if (is_fused(axis)) {
                pure_[i] = false;
            }
        }
    }
    /// Whether a part of a split whose whole is pure.
    bool inside_pure(int index) const {
        const LoopAxis &axis = stage_.axes[index];
        const bool part = axis.origin == LoopAxis::Origin::split_outer || axis.origin == LoopAxis::Origin::split_inner;
        return part && pure_[axis.parent];
    }

    static tile::Level level_of(Binding binding) {
        switch (binding) {
            case Binding::block:
                return tile::Level::grid;
            case Binding::thread:
            case Binding::lane:
                return tile::Level::thread;
            case Binding::unrolled:
                return tile::Level::unroll;
            case Binding::vectorized:
                return tile::Level::vector;
            default:
                return tile::Level::loop;
        }
    }

    void add_axis(int index) {
        tile::Axis axis;
        axis.name = prefix_ + stage_.axes[index].name;
        axis.extent = stage_.axes[index].extent;
        add_leaves(axis, index, 1, static_cast<int>(tree_.axes.size()));
        if (const ScheduleFlag *flag = stage_.find_flag("align", stage_.axes[index].name); flag && axis.leaves.size() > 1) {
            axis.shift = tile::variable(axis.name + ".shift");  // build_nest knows by how much
            tile::Leaf &outer = axis.leaves.front();
            if (outer.level == tile::Level::loop || outer.level == tile::Level::unroll) {
                outer.extent = ceil_div(axis.extent + (flag->number(1) - 1), outer.stride);
            }
        }
        if (const ScheduleFlag *flag = stage_.find_flag("shift_inwards", stage_.axes[index].name); flag && axis.leaves.size() > 1) {
            move_inwards(axis, *flag, stage_.axes[index].reduction);
        }
        if (stage_.axes[index].reduction) {
            tree_.reduction_axes.push_back(axis.name);
        }
        axis_of_[index] = axis.name;
        tree_.axes.push_back(std::move(axis));
    }

    void move_inwards(tile::Axis &axis, const ScheduleFlag &flag, bool is_reduced) {
        const std::int64_t lanes = flag.number(1);
        if (is_reduced || !axis.extent.is_constant() || axis.extent.value() < lanes || !(axis.leaves.back().extent == Extent(lanes))) {
            schedule_error(flag.directive.location, flag.directive.to_string(),
                           is_reduced
                               ? "a term that is met twice counts twice"
                               : fmt::format("the axis is no constant, shorter than {} or not split into vectors of that length", lanes),
                           "split an axis of values by the number that shift_inwards names, or leave the directive out");
        }
        if (!(mod(axis.extent, Extent(lanes)) == Extent(0))) {
            axis.shift = tile::inward_shift(axis, lanes);
        }
    }

    void add_leaves(tile::Axis &into, int index, const Extent &stride, int axis_index) {
        const LoopAxis &axis = stage_.axes[index];
        if (is_split(axis)) {
            add_leaves(into, axis.children[0], stride * stage_.axes[axis.children[1]].extent, axis_index);
            add_leaves(into, axis.children[1], stride, axis_index);
            return;
        }
        // A leaf that is the whole axis needs a name of its own: the axis's is the index's.
        const bool whole = prefix_ + axis.name == into.name;
        tile::Leaf leaf{prefix_ + axis.name + (whole ? "_i" : ""), axis.extent, level_of(axis.binding), stride, 1};
        if (const ScheduleFlag *flag = stage_.find_flag("split_blocks", axis.name)) {
            const std::int64_t parts = flag->number(1);
            // A convolution on the matrix unit divides all of its steps, taps included.
            const bool has_taps = stage_.find_flag("tensor_core") &&
                                  std::count_if(stage_.axes.begin(), stage_.axes.end(),
                                                [](const LoopAxis &a) { return a.reduction && a.origin == LoopAxis::Origin::root; }) > 1;
            if (!has_taps && leaf.extent.is_constant() && leaf.extent.value() < parts) {
                schedule_error(flag->directive.location, flag->directive.to_string(),
                               fmt::format("loop '{}' has {} iterations, fewer than the blocks that are to share them", axis.name,
                                           leaf.extent.value()),
                               fmt::format("give {} or fewer", leaf.extent.value()));
            }
            tile::Leaf blocks = leaf;
            blocks.name = prefix_ + axis.name + "_part";
            blocks.level = tile::Level::grid;
            blocks.extent = parts;
            leaf.extent = ceil_div(leaf.extent, parts);
            blocks.stride = leaf.stride * leaf.extent;
            extra_grid_.push_back({axis_index, static_cast<int>(into.leaves.size())});
            into.leaves.push_back(blocks);
        }
        place_of_[index] = {axis_index, static_cast<int>(into.leaves.size())};
        into.leaves.push_back(leaf);
    }

    /// Numbers threads and blocks: the first dimension runs fastest, lanes before it.
    void bind_units() {
        for (Binding binding : {Binding::thread, Binding::block}) {
            Extent unit = 1;
            std::vector<int> bound = binding == Binding::thread ? stage_.bound_to(Binding::lane) : std::vector<int>();
            const std::vector<int> more = stage_.bound_to(binding);
            bound.insert(bound.end(), more.begin(), more.end());
            for (int index : bound) {
                auto found = place_of_.find(index);
                if (found != place_of_.end()) {
                    tile::Leaf &leaf = tree_.axes[found->second.axis].leaves[found->second.leaf];
                    leaf.unit_stride = unit;
                    unit = unit * leaf.extent;
                }
            }
            if (binding == Binding::block) {
                mark_cluster();
                for (const NestLoop &place : extra_grid_) {
                    tile::Leaf &leaf = tree_.axes[place.axis].leaves[place.leaf];
                    leaf.unit_stride = unit;
                    unit = unit * leaf.extent;
                }
            }
        }
    }

    /// The fastest block loops run over the blocks of a cluster; those of a product on the matrix unit share its terms instead.
    void mark_cluster() {
        const ScheduleFlag *flag = stage_.find_flag("tensor_core") ? nullptr : stage_.find_flag("cluster");
        const std::int64_t blocks = flag ? flag->number(0) * flag->number(1) : 1;
        std::int64_t covered = 1;
        for (int index : stage_.bound_to(Binding::block)) {
            auto found = place_of_.find(index);
            if (covered < blocks && found != place_of_.end()) {
                tile::Leaf &leaf = tree_.axes[found->second.axis].leaves[found->second.leaf];
                covered = leaf.extent.is_constant() ? covered * leaf.extent.value() : blocks + 1;
                leaf.level = tile::Level::cluster;
            }
        }
        if (covered != blocks && !only_reductions_) {
            schedule_error(flag->directive.location, flag->directive.to_string(),
                           "the first loops of gpu_blocks do not run over that many blocks",
                           "split a loop by the cluster's size and name the part first in gpu_blocks");
        }
    }

    Halide::Expr expression(int index) {
        const LoopAxis &axis = stage_.axes[index];
        if (pure_[index] && axis_of_.count(index)) {
            return tile::variable(axis_of_[index]);
        }
        if (is_split(axis)) {
            return expression(axis.children[0]) * to_halide(stage_.axes[axis.children[1]].extent) + expression(axis.children[1]);
        }
        if (is_fused(axis)) {
            const LoopAxis &fused = stage_.axes[axis.children[0]];
            const Halide::Expr inner = to_halide(stage_.axes[fused.second_parent].extent);
            const Halide::Expr whole = expression(axis.children[0]);
            return fused.parent == index ? whole / inner : whole % inner;
        }
        internal_error("loop {} of stage {} belongs to no axis", axis.name, stage_.name);
    }

    /// A root that is split without being pure needs its own guard where a split does not divide.
    void guard_root(int index) {
        const LoopAxis &axis = stage_.axes[index];
        if (pure_[index] || !inexact(index)) {
            return;
        }
        const Halide::Expr e = tree_.roots[axis.name];
        std::set<std::string> names;
        for (const std::string &name : variables_of(e)) {
            if (std::any_of(tree_.axes.begin(), tree_.axes.end(), [&](const tile::Axis &a) { return a.name == name; })) {
                names.insert(name);
            }
        }
        tree_.guards.emplace_back(names, e < to_halide(axis.extent));
    }
    bool inexact(int index) const {
        const LoopAxis &axis = stage_.axes[index];
        if (!is_split(axis)) {
            return false;
        }
        const Extent covered = stage_.axes[axis.children[0]].extent * stage_.axes[axis.children[1]].extent;
        return !(covered == axis.extent) || inexact(axis.children[0]) || inexact(axis.children[1]);
    }

    const ScheduledStage &stage_;
    std::string prefix_;
    bool only_reductions_;
    AxisTree tree_;
    std::vector<bool> pure_;
    std::map<int, NestLoop> place_of_;
    std::map<int, std::string> axis_of_;
    std::vector<NestLoop> extra_grid_;
};

}  // namespace

AxisTree build_axis_tree(const ScheduledStage &stage, const std::string &prefix, bool only_reductions) {
    return TreeBuilder(stage, prefix, only_reductions).run();
}

}  // namespace tilewright
