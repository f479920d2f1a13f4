#include "lowering/cpu_schedules/product_schedule.h"

#include <algorithm>
#include <cmath>

#include "lowering/cpu_schedules/vector_axis.h"

namespace tilewright {

std::vector<std::string> arguments_of(const KeptStage &kept) { return kept.stage->func.function().args(); }

std::int64_t typical(const Extent &extent) { return extent.constant().value_or(64); }

namespace {

constexpr double parallel_work = 400000;  ///< multiply-adds below which one core does it sooner
constexpr double task_work = 200000;      ///< multiply-adds of one parallel task

class ProductSchedule {
public:
    ProductSchedule(const Kernel &kernel, const KernelFlow &flow, ProductPlace &place, ScheduleBuilder &builder)
        : kernel_(kernel), flow_(flow), place_(place), builder_(builder), arguments_(arguments_of(*place.product)) {}

    void run() {
        decide_order();
        tile_own_loops();
        if (!place_.is_anchor) {
            tile_anchor();
        }
        pack();
    }

private:
    std::string wide() const { return arguments_[place_.wide]; }
    std::string tall() const { return place_.tall >= 0 ? arguments_[place_.tall] : ""; }
    std::string name() const { return place_.product->stage->name(); }

    double multiply_adds() const {
        double work = 1;
        for (const Extent &extent : place_.product->stage->extents) {
            work *= static_cast<double>(typical(extent));
        }
        return work * reduction_work();
    }

    double reduction_work() const {
        double work = 1;
        for (const Extent &extent : place_.product->stage->reduction_extents) {
            work *= static_cast<double>(typical(extent));
        }
        return work;
    }

    /// Which argument's outer loop is spread over the cores, and in pieces of how many tiles.
    void decide_order() {
        const std::vector<Extent> &extents = place_.product->stage->extents;
        const bool is_dynamic = std::any_of(extents.begin(), extents.end(), [](const Extent &e) { return !e.is_constant(); });
        if (!is_dynamic && multiply_adds() < parallel_work) {
            return;
        }
        const double tile = static_cast<double>(place_.rows * place_.columns) * reduction_work();
        const std::int64_t column_tiles = (typical(extents[place_.wide]) + place_.columns - 1) / place_.columns;
        for (int i = 0; i < static_cast<int>(extents.size()); i++) {
            if (i == place_.wide || i == place_.tall || typical(extents[i]) < 2) {
                continue;
            }
            spread_ = i;
            return;
        }
        if (column_tiles >= 4 || place_.tall < 0) {
            spread_ = place_.wide;
            return;
        }
        spread_ = place_.tall;
        const double tiles = std::ceil(static_cast<double>(typical(extents[place_.tall])) / static_cast<double>(place_.rows));
        chunk_ = static_cast<std::int64_t>(std::max(1.0, std::min(std::ceil(task_work / tile), std::floor(tiles / 2))));
    }

    /// Outer loops of the tile, innermost first, of the stage whose arguments are `wide` and `tall`.
    std::vector<std::string> split_tile(const std::string &stage, const std::string &wide, const std::string &tall, bool spread) {
        const bool is_product = stage == name();
        StageSchedule s = builder_[stage];
        s.split(wide, wide + "o", wide + "b", place_.columns);
        s.split(wide + "b", wide + "u", wide + "i", place_.lanes).vectorize(wide + "i").unroll(wide + "u");
        std::vector<std::string> outer;
        if (!tall.empty()) {
            s.split(tall, tall + "o", tall + "i", place_.rows);
            if (is_product) {
                s.unroll(tall + "i");
            }
            outer.push_back(tall + "o");
            if (spread && spread_ == place_.tall) {
                if (chunk_ > 1) {
                    s.split(tall + "o", tall + "t", tall + "n", chunk_).parallel(tall + "t");
                    outer = {tall + "n", tall + "t"};
                } else {
                    s.parallel(tall + "o");
                }
            }
        }
        outer.push_back(wide + "o");
        if (spread && spread_ == place_.wide) {
            s.parallel(wide + "o");
        }
        return outer;
    }

    void tile_own_loops() {
        std::vector<std::string> outer = split_tile(name(), wide(), tall(), place_.is_anchor);
        std::vector<DirectiveArgument> order = {wide() + "i", wide() + "u"};
        if (place_.tall >= 0) {
            order.emplace_back(tall() + "i");
        }
        const auto &variables = place_.product->stage->func.function().update(0).schedule().rvars();
        for (auto variable = variables.rbegin(); variable != variables.rend(); ++variable) {
            order.emplace_back(variable->var);
        }
        order.insert(order.end(), outer.begin(), outer.end());
        for (int i = static_cast<int>(arguments_.size()) - 1; i >= 0; i--) {
            if (i != place_.wide && i != place_.tall) {
                order.emplace_back(arguments_[i]);
            }
        }
        builder_.directives.push_back({name(), "reorder", order, {}, {}});
        if (place_.is_anchor) {
            innermost_outer_ = outer.front();
            panel_loop_ = wide() + "o";
            place_.loop_of_axis = arguments_;
            place_.usable_depth = leading_untiled(arguments_, wide(), tall());
            if (spread_ >= 0 && spread_ != place_.wide && spread_ != place_.tall) {
                builder_[name()].parallel(arguments_[spread_]);
            }
        }
    }

    void tile_anchor() {
        const KeptStage &anchor = *flow_.find(flow_.anchor->name());
        const std::vector<std::string> axes = arguments_of(anchor);
        const std::string anchor_wide = axes[place_.product->anchor_axes[place_.wide]];
        const std::string anchor_tall = place_.tall >= 0 ? axes[place_.product->anchor_axes[place_.tall]] : "";
        std::vector<std::string> outer = split_tile(anchor.stage->name(), anchor_wide, anchor_tall, true);
        std::vector<DirectiveArgument> order = {anchor_wide + "i", anchor_wide + "u"};
        if (!anchor_tall.empty()) {
            order.emplace_back(anchor_tall + "i");
        }
        order.insert(order.end(), outer.begin(), outer.end());
        for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
            if (*axis != anchor_wide && *axis != anchor_tall) {
                order.emplace_back(*axis);
            }
        }
        if (order.size() > 1) {
            builder_.directives.push_back({anchor.stage->name(), "reorder", order, {}, {}});
        }
        if (spread_ >= 0 && spread_ != place_.wide && spread_ != place_.tall) {
            builder_[anchor.stage->name()].parallel(axes[place_.product->anchor_axes[spread_]]);
        }
        innermost_outer_ = outer.front();
        panel_loop_ = anchor_wide + "o";
        place_.loop_of_axis = axes;
        place_.usable_depth = leading_untiled(axes, anchor_wide, anchor_tall);
        builder_[name()].compute_at(anchor.stage->name(), innermost_outer_);
    }

    static int leading_untiled(const std::vector<std::string> &axes, const std::string &wide, const std::string &tall) {
        int depth = 0;
        while (depth < static_cast<int>(axes.size()) && axes[depth] != wide && axes[depth] != tall) {
            depth++;
        }
        return depth;
    }

    void pack() {
        if (!place_.packed) {
            return;
        }
        StageSchedule copy = builder_[place_.packed->producer].in(name());
        const int rank = static_cast<int>(place_.packed->indices.size());
        const std::string lane_axis = "d" + std::to_string(place_.packed_axis);
        const std::string stage = place_.packed->producer + ".in(" + name() + ")";
        std::vector<std::string> others;
        for (int i = rank - 1; i >= 0; i--) {
            if (i != place_.packed_axis) {
                others.push_back("d" + std::to_string(i));
            }
        }
        if (place_.packed_at_load) {
            copy.compute_root().split(lane_axis, "po", "pi", place_.columns);
            std::vector<DirectiveArgument> order = {"pi"};
            order.insert(order.end(), others.begin(), others.end());
            order.emplace_back("po");
            builder_.directives.push_back({stage, "reorder", order, {}, {}});
            return;
        }
        // The lanes' axis innermost: so the panel lies in memory.
        std::vector<DirectiveArgument> order = {lane_axis};
        order.insert(order.end(), others.begin(), others.end());
        if (order.size() > 1) {
            builder_.directives.push_back({stage, "reorder", order, {}, {}});
        }
        const std::string contiguous = contiguous_axis();
        if (contiguous.empty() || contiguous == lane_axis) {
            copy.split(lane_axis, "po", "pi", place_.lanes).vectorize("pi");
        } else {
            // Rows are read as they lie and written across: reading across would use one element of a line at a time.
            copy.split(contiguous, "po", "pi", place_.lanes).vectorize("pi");
            builder_.directives.push_back({stage, "reorder", {"pi", lane_axis, "po"}, {}, {}});
        }
        copy.compute_at(place_.is_anchor ? name() : flow_.anchor->name(), panel_loop_);
    }

    /// Dimension of the packed tensor along which its elements are neighbours and that is long enough for vectors.
    std::string contiguous_axis() const {
        const TensorInput *input = kernel_.algorithm.find_input(place_.packed->producer);
        if (!input) {
            return "";
        }
        for (int i = 0; i < input->meta.rank(); i++) {
            if (input->meta.strides[i].constant() == 1 && lanes_for(input->meta.sizes[i], 32) == place_.lanes) {
                return "d" + std::to_string(i);
            }
        }
        return "";
    }

    const Kernel &kernel_;
    const KernelFlow &flow_;
    ProductPlace &place_;
    ScheduleBuilder &builder_;
    std::vector<std::string> arguments_;
    int spread_ = -1;
    std::int64_t chunk_ = 1;
    std::string innermost_outer_, panel_loop_;
};

}  // namespace

void schedule_product(const Kernel &kernel, const KernelFlow &flow, ProductPlace &place, ScheduleBuilder &builder) {
    ProductSchedule(kernel, flow, place, builder).run();
}

}  // namespace tilewright
