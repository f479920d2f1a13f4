// Chooses the tile of a product: which argument vectors run along, which one rows, how many of each, and what is packed.
#include <algorithm>
#include <cmath>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cpu_schedules/product_schedule.h"
#include "lowering/cpu_schedules/vector_axis.h"

namespace tilewright {

namespace hi = Halide::Internal;

namespace {

constexpr std::int64_t few_rows = 8;  ///< up to so many rows a product is memory-bound: its rows are folded along the reduction instead

bool varies(const Read &read, const std::string &variable) {
    return std::any_of(read.indices.begin(), read.indices.end(), [&](const Halide::Expr &index) { return mentions(index, variable); });
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

    /// How well vectors along the chosen axis do. Results lie along it, where those of another axis are scattered; but what has gaps
    /// between its elements is gathered.
    double worth_of_chosen() const {
        if (place_.wide < 0) {
            return 0;
        }
        const double filled = utilisation(kept_.stage->extents[place_.wide]);
        const std::vector<const Read *> reads = reads_along(arguments_[place_.wide]);
        const bool has_gaps = std::any_of(reads.begin(), reads.end(),
                                          [&](const Read *read) { return stride_along(kernel_, *read, arguments_[place_.wide]) != 1; });
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
        const bool needs_transposing =
            std::any_of(reads.begin(), reads.end(), [&](const Read *read) { return stride_along(kernel_, *read, wide) != 1; });
        return rows && *rows <= few_rows && needs_transposing && along.is_reduction && typical(along.extent) >= 2 * along.lanes;
    }

    void choose_size() {
        const bool many_registers = lanes_for(1 << 20, 32) == 16;
        const std::int64_t vectors = (typical(kept_.stage->extents[place_.wide]) + place_.lanes - 1) / place_.lanes;
        const std::int64_t most_vectors = place_.tall < 0 && place_.packed_at_load ? 8 : place_.tall < 0 || many_registers ? 4 : 2;
        const bool overhangs = place_.packed_at_load || !kept_.stage->extents[place_.wide].is_constant();
        const bool fills_four = vectors >= 4 && (overhangs || vectors % 4 == 0 || vectors >= 12);
        const std::int64_t across = std::min(most_vectors, fills_four     ? std::max<std::int64_t>(4, most_vectors)
                                                           : vectors == 3 ? 3
                                                                          : std::min<std::int64_t>(vectors, 2));
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

bool is_tiled_form(const KeptStage &kept) { return kept.form == Form::contraction || kept.form == Form::window; }

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
                                    found->depth > 0 && found->readers == std::vector<std::string>{anchor.stage->name()} &&
                                    found->stage->rank() == anchor.stage->rank() &&
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

}  // namespace tilewright
