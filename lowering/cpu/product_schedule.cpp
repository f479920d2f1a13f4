#include "lowering/cpu/product_schedule.h"

#include <algorithm>
#include <cmath>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cpu/vector_axis.h"

namespace tilewright {

namespace hi = Halide::Internal;

namespace {

constexpr double parallel_work = 400000;  ///< multiply-adds below which one core does it sooner
constexpr double task_work = 200000;      ///< multiply-adds of one parallel task
constexpr std::int64_t few_rows = 8;      ///< up to so many rows a product is memory-bound: its rows are folded along the reduction instead

const std::vector<std::string> arguments_of(const KeptStage &kept) {
    return kept.stage->func.function().args();
}

bool varies(const Read &read, const std::string &variable) {
    return std::any_of(read.indices.begin(), read.indices.end(), [&](const Halide::Expr &index) { return mentions(index, variable); });
}

std::int64_t typical(const Extent &extent) {
    return extent.constant().value_or(64);
}

/// Rows of a tile, at most `most`, so that the least time passes: every tile costs about as much as a further row and a half.
std::int64_t rows_of_tile(const Extent &extent, std::int64_t most) {
    const std::optional<std::int64_t> constant = extent.constant();
    if (!constant) {
        return most;
    }
    std::int64_t best = 1;
    double least = INFINITY;
    for (std::int64_t rows = 1; rows <= most; rows++) {
        const double tiles = std::ceil(static_cast<double>(*constant) / static_cast<double>(rows));
        const double cost = tiles * (static_cast<double>(rows) + 1.5);
        if (cost <= least) {
            least = cost;
            best = rows;
        }
    }
    return std::max<std::int64_t>(1, std::min(best, *constant));
}

/// Part of the vectors' lanes that an axis fills.
double utilisation(const Extent &extent) {
    const std::optional<std::int64_t> constant = extent.constant();
    if (!constant) {
        return 1;
    }
    const auto lanes = static_cast<double>(lanes_for(1 << 20, 32));
    return static_cast<double>(*constant) / (std::ceil(static_cast<double>(*constant) / lanes) * lanes);
}

class TileChoice {
public:
    TileChoice(const Kernel &kernel, const KeptStage &product, const FixedInputs &fixed)
        : kernel_(kernel), kept_(product), fixed_(fixed), arguments_(arguments_of(product)) {}

    std::optional<ProductPlace> run() {
        const VectorAxis axis = choose_vector_axis(kernel_, kept_, false);
        if (!axis.name.empty()) {
            place_.wide = static_cast<int>(std::find(arguments_.begin(), arguments_.end(), axis.name) - arguments_.begin());
            place_.lanes = axis.lanes;
        }
        prefer_packed_weights();
        if (place_.wide < 0) {
            return std::nullopt;
        }
        place_.product = &kept_;
        choose_tall();
        if (!place_.packed && is_better_folded_along_rows()) {
            return std::nullopt;
        }
        choose_size();
        choose_packing();
        return place_;
    }

private:
    std::vector<const Read *> reads_along(const std::string &variable) const {
        std::vector<const Read *> result;
        for (const Read &read : kept_.reads) {
            if (varies(read, variable)) {
                result.push_back(&read);
            }
        }
        return result;
    }

    /// The dimension of the argument's only read that the argument alone walks; -1 where there is none, or where something stands between.
    int packable_dimension(int argument) const {
        const std::vector<const Read *> reads = reads_along(arguments_[argument]);
        if (reads.size() != 1 || !is_read_directly(*reads[0])) {
            return -1;
        }
        for (std::size_t i = 0; i < reads[0]->indices.size(); i++) {
            const auto *variable = reads[0]->indices[i].as<hi::Variable>();
            if (variable && variable->name == arguments_[argument]) {
                return static_cast<int>(i);
            }
        }
        return -1;
    }

    bool is_weight(const Read &read) const {
        const TensorInput *input = read.from_input ? kernel_.algorithm.find_input(read.producer) : nullptr;
        if (!input || fixed_.empty() || !fixed_[input - kernel_.algorithm.inputs.data()]) {
            return false;
        }
        return std::all_of(input->meta.sizes.begin(), input->meta.sizes.end(), [](const Extent &size) { return size.is_constant(); });
    }

    /// How well vectors along the chosen axis do. Results lie along it, where those of another axis are scattered; but what has gaps between
    /// its elements is gathered.
    double worth_of_chosen() const {
        if (place_.wide < 0) {
            return 0;
        }
        const double filled = utilisation(kept_.stage->extents[place_.wide]);
        const std::vector<const Read *> reads = reads_along(arguments_[place_.wide]);
        const bool has_gaps = std::any_of(reads.begin(), reads.end(), [&](const Read *read) { return stride_along(kernel_, *read, arguments_[place_.wide]) != 1; });
        return has_gaps ? filled / 2 : filled + 0.15;
    }

    /// Vectors along an axis of a weight: it is packed at load, once.
    void prefer_packed_weights() {
        double best = worth_of_chosen();
        const int chosen = place_.wide;
        for (int i = 0; i < static_cast<int>(arguments_.size()); i++) {
            const int lanes = lanes_for(kept_.stage->extents[i], 32);
            const int dimension = lanes < 8 ? -1 : packable_dimension(i);
            const double filled = utilisation(kept_.stage->extents[i]);
            if (dimension >= 0 && (filled > best || i == chosen) && is_weight(*reads_along(arguments_[i])[0])) {
                best = std::max(best, filled);
                place_.wide = i;
                place_.lanes = lanes;
                place_.packed = reads_along(arguments_[i])[0];
                place_.packed_axis = dimension;
                place_.packed_at_load = true;
            }
        }
    }

    void choose_tall() {
        const std::vector<const Read *> wide = reads_along(arguments_[place_.wide]);
        std::int64_t longest = 1;
        for (int i = 0; i < static_cast<int>(arguments_.size()); i++) {
            const bool independent = std::none_of(wide.begin(), wide.end(), [&](const Read *read) { return varies(*read, arguments_[i]); });
            const std::int64_t extent = typical(kept_.stage->extents[i]);
            if (i != place_.wide && independent && extent > 1 && extent >= longest) {
                place_.tall = i;
                longest = extent;
            }
        }
    }

    bool is_better_folded_along_rows() const {
        const std::string wide = arguments_[place_.wide];
        const std::optional<std::int64_t> rows = place_.tall < 0 ? 1 : kept_.stage->extents[place_.tall].constant();
        const VectorAxis along = choose_vector_axis(kernel_, kept_, true);
        const std::vector<const Read *> reads = reads_along(wide);
        const bool needs_transposing = std::any_of(reads.begin(), reads.end(), [&](const Read *read) { return stride_along(kernel_, *read, wide) != 1; });
        return rows && *rows <= few_rows && needs_transposing && along.is_reduction && typical(along.extent) >= 2 * along.lanes;
    }

    void choose_size() {
        const bool many_registers = lanes_for(1 << 20, 32) == 16;
        const std::int64_t vectors = (typical(kept_.stage->extents[place_.wide]) + place_.lanes - 1) / place_.lanes;
        const std::int64_t most_vectors = place_.tall < 0 && place_.packed_at_load ? 8 : place_.tall < 0 || many_registers ? 4 : 2;
        const bool overhangs = place_.packed_at_load || !kept_.stage->extents[place_.wide].is_constant();
        const bool fills_four = vectors >= 4 && (overhangs || vectors % 4 == 0 || vectors >= 12);
        const std::int64_t across = std::min(most_vectors, fills_four ? std::max<std::int64_t>(4, most_vectors) : vectors == 3 ? 3 : std::min<std::int64_t>(vectors, 2));
        place_.columns = std::max<std::int64_t>(1, across) * place_.lanes;
        if (place_.tall >= 0) {
            const std::int64_t most = !many_registers ? 4 : across >= 4 ? 6 : across == 3 ? 8 : across == 2 ? 10 : 12;
            place_.rows = rows_of_tile(kept_.stage->extents[place_.tall], most);
        }
    }

    bool divides(int argument, std::int64_t factor) const {
        const std::optional<std::int64_t> extent = kept_.stage->extents[argument].constant();
        return extent && *extent % factor == 0;
    }

    void choose_packing() {
        if (place_.packed || kept_.form != Form::contraction) {
            return;
        }
        const int dimension = packable_dimension(place_.wide);
        if (dimension < 0) {
            return;
        }
        const Read *read = reads_along(arguments_[place_.wide])[0];
        const bool is_vector = stride_along(kernel_, *read, arguments_[place_.wide]) == 1 && divides(place_.wide, place_.columns);
        if (!is_vector) {
            place_.packed = read;
            place_.packed_axis = dimension;
        }
    }

    /// The product's own expressions read it, at the places that the analysis saw: nothing inlined stands between.
    bool is_read_directly(const Read &read) const {
        const std::vector<Read> own = reads_of(*kept_.stage);
        return std::count_if(own.begin(), own.end(), [&](const Read &r) { return r.producer == read.producer; }) == 1;
    }

    const Kernel &kernel_;
    const KeptStage &kept_;
    const FixedInputs &fixed_;
    std::vector<std::string> arguments_;
    ProductPlace place_;
};

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

bool is_tiled_form(const KeptStage &kept) {
    return kept.form == Form::contraction || kept.form == Form::window;
}

}  // namespace

std::optional<ProductPlace> find_product(const Kernel &kernel, const KernelFlow &flow, const FixedInputs &fixed) {
    const KeptStage *found = nullptr;
    for (const KeptStage &kept : flow.kept) {
        if (!is_tiled_form(kept)) {
            continue;
        }
        if (found) {
            return std::nullopt;
        }
        found = &kept;
    }
    if (!found) {
        return std::nullopt;
    }
    const KeptStage &anchor = *flow.find(flow.anchor->name());
    const bool is_anchor = found == &anchor;
    const bool element_by_element = !is_anchor && !found->is_output && (anchor.form == Form::pointwise || anchor.form == Form::gather) &&
                                    found->depth > 0 && found->readers.size() == 1 && found->stage->rank() == anchor.stage->rank() &&
                                    std::count(found->anchor_axes.begin(), found->anchor_axes.end(), -1) == 0;
    if (!is_anchor && !element_by_element) {
        return std::nullopt;
    }
    std::optional<ProductPlace> place = TileChoice(kernel, *found, fixed).run();
    if (place) {
        place->is_anchor = is_anchor;
    }
    return place;
}

void schedule_product(const Kernel &kernel, const KernelFlow &flow, ProductPlace &place, ScheduleBuilder &builder) {
    ProductSchedule(kernel, flow, place, builder).run();
}

}  // namespace tilewright
