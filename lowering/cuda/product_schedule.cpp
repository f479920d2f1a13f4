#include "lowering/cuda/product_schedule.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/schedule/builder.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/strided_operand.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::int64_t depth = 64;
constexpr int most_sums = 192;  // registers of a thread: what else it keeps needs some too

/// Reads of pure stages become what they compute, down to tensors.
class Expanded : public hi::IRGraphMutator {
public:
    explicit Expanded(const Algorithm &algorithm) : algorithm_(algorithm) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        const Expr e = hi::IRGraphMutator::visit(op);
        const auto *call = e.as<hi::Call>();
        const Stage *stage = call && call->call_type == hi::Call::Halide ? algorithm_.find_stage(call->name) : nullptr;
        const hi::Function function = stage ? stage->func.function() : hi::Function();
        if (!stage || function.has_update_definition() || function.has_extern_definition()) {
            return e;
        }
        Substitution places;
        for (std::size_t i = 0; i < call->args.size(); ++i) {
            places[function.args()[i]] = call->args[i];
        }
        return Expanded(algorithm_).mutate(substitute_variables(inline_lets(function.definition().values()[call->value_index]), places));
    }

private:
    const Algorithm &algorithm_;
};

/// What a factor multiplies: a value of 16 bits, around a tensor that the bulk copy unit fetches.
struct FactorRead {
    const hi::Call *call = nullptr;
    Expr value;             ///< keeps the call alive
    bool computed = false;  ///< more than the tensor's element
};
std::optional<FactorRead> read_of(const Expr &factor, const std::string &k, const Algorithm &algorithm) {
    FactorRead result;
    result.value = below_widening(Expanded(algorithm).mutate(factor));
    const Halide::Type type = result.value.type();
    if (!(type.is_float() || type.is_bfloat()) || type.bits() != 16) {
        return std::nullopt;
    }
    const auto *plain = result.value.as<hi::Call>();
    result.computed = !(plain && is_read(plain));
    visit_reads(result.value, [&](const hi::Call *call) {
        const TensorInput *input = algorithm.find_input(call->name);
        bool along_k = false;
        for (std::size_t i = 0; input && i < call->args.size(); ++i) {
            const auto *variable = call->args[i].as<hi::Variable>();
            along_k = along_k || (variable && variable->name == k && input->meta.strides[i] == Extent(1));
        }
        const bool narrow = call->type.bits() >= 8 && call->type.bytes() <= 2 && call->args.size() > 1;
        result.call = !result.call && (!result.computed || (along_k && narrow)) ? call : result.call;
    });
    return result.call && result.call->call_type == hi::Call::Image ? std::optional(result) : std::nullopt;
}

/// Arguments of the product that the read's places mention, and whether the bulk copy unit can fetch it: unit stride along one of its
/// own axes or K, other strides multiples of 16 bytes.
struct OperandPlaces {
    std::set<std::string> variables;
    bool fetchable = false;
};
OperandPlaces places_of(const hi::Call *read, const Algorithm &algorithm) {
    OperandPlaces result;
    const TensorInput *input = algorithm.find_input(read->name);
    const int per_access = 16 / read->type.bytes();
    bool unit = false, aligned = input != nullptr;
    for (std::size_t i = 0; input && i < read->args.size(); ++i) {
        const auto *variable = read->args[i].as<hi::Variable>();
        if (!variable) {
            for (const std::string &name : variables_of(read->args[i])) {
                result.variables.insert(name);
            }
            aligned = aligned && variables_of(read->args[i]).empty();
            continue;
        }
        result.variables.insert(variable->name);
        const Extent &stride = input->meta.strides[i];
        if (input->meta.sizes[i] == Extent(1)) {
            continue;
        }
        unit = unit || stride == Extent(1);
        aligned = aligned && (stride == Extent(1) || mod(stride, per_access) == Extent(0));
    }
    aligned = aligned && input && mod(input->meta.offset, per_access) == Extent(0);
    result.fetchable = unit && aligned;
    return result;
}

/// The first of several products, or the only one, as its operands stand.
struct SingleProduct {
    const Stage *stage = nullptr;
    FactorRead left, right;  ///< the left one varies along the rows
    OperandPlaces a, b;
};

std::optional<SingleProduct> match_single(const Stage &stage, const Algorithm &algorithm) {
    const auto fold = stage.func.function().has_update_definition() ? match_fold(stage.func) : std::nullopt;
    if (!fold || fold->combiner != Combiner::sum || fold->variables.size() != 1 || fold->terms.size() != 1 || fold->scan_axis >= 0 ||
        !(stage.func.types()[0] == Halide::Float(32)) || stage.rank() == 0) {
        return std::nullopt;
    }
    const Expr term = inline_lets(fold->terms[0]);
    const auto *product = term.as<hi::Mul>();
    const auto left = product ? read_of(product->a, fold->variables[0], algorithm) : std::nullopt;
    const auto right = product ? read_of(product->b, fold->variables[0], algorithm) : std::nullopt;
    if (!left || !right || !(left->value.type() == right->value.type()) || (left->computed && right->computed)) {
        return std::nullopt;
    }
    SingleProduct result{&stage, *left, *right, places_of(left->call, algorithm), places_of(right->call, algorithm)};
    const std::string &k = fold->variables[0];
    if (!result.a.fetchable || !result.b.fetchable || !result.a.variables.count(k) || !result.b.variables.count(k)) {
        return std::nullopt;
    }
    if (result.a.variables.count(stage.func.function().args().back())) {
        std::swap(result.a, result.b);
        std::swap(result.left, result.right);
    }
    return result;
}

/// Places along which a stage extends, and their variables.
std::vector<int> real_axes(const Stage &stage) {
    std::vector<int> axes;
    for (int i = 0; i < stage.rank(); ++i) {
        if (!(stage.extents[i] == Extent(1))) {
            axes.push_back(i);
        }
    }
    return axes;
}

/// Whether everything that reads a product reads it at its own arguments; axes of one place may be left out.
bool read_in_place(const Algorithm &algorithm, const std::set<std::string> &products) {
    for (const Stage &stage : algorithm.stages) {
        for (const Read &read : reads_of(stage)) {
            if (read.from_input || !products.count(read.producer) || stage.name() == read.producer) {
                continue;
            }
            const std::vector<int> own = real_axes(stage), read_axes = real_axes(*algorithm.find_stage(read.producer));
            if (own.size() != read_axes.size()) {
                return false;
            }
            for (std::size_t i = 0; i < own.size(); ++i) {
                const auto *variable = read.indices[read_axes[i]].as<hi::Variable>();
                if (!variable || variable->name != stage.func.function().args()[own[i]]) {
                    return false;
                }
            }
        }
    }
    return true;
}

/// Whether every output is pointwise over the product's own axes, and where: their stages.
bool collect_outputs(const Kernel &kernel, const std::set<std::string> &products, std::vector<std::string> &outputs) {
    const Algorithm &algorithm = kernel.algorithm;
    const auto space = [](const Stage &stage) {
        std::vector<Extent> extents;
        for (int i : real_axes(stage)) {
            extents.push_back(stage.extents[i]);
        }
        return extents;
    };
    const std::vector<Extent> own = space(*algorithm.find_stage(*products.begin()));
    for (const TensorOutput &output : algorithm.outputs) {
        const Stage *stage = algorithm.find_stage(output.stage);
        if (space(*stage) != own || (!products.count(stage->name()) && stage->func.function().has_update_definition())) {
            return false;
        }
        if (std::find(outputs.begin(), outputs.end(), stage->name()) == outputs.end()) {
            outputs.push_back(stage->name());
        }
    }
    // The anchor is what follows a product, where anything does.
    std::stable_partition(outputs.begin(), outputs.end(), [&](const std::string &name) { return !products.count(name); });
    return read_in_place(algorithm, products);
}

/// Rows and columns as arguments of the anchor. False where it leaves out axes of other products than of a single row.
bool place_in_anchor(const Algorithm &algorithm, MatrixProduct &result) {
    const Stage &anchor = *algorithm.find_stage(result.outputs.front()), &product = *algorithm.find_stage(result.products.front());
    if (anchor.rank() == product.rank()) {
        return true;
    }
    const bool single_row = result.m == Extent(1) && result.batch == Extent(1) && real_axes(anchor).size() == 1;
    result.rows.clear();
    result.columns = single_row ? real_axes(anchor)[0] : -1;
    return single_row;
}

/// Sizes and arguments of rows and columns; false where they are no matrix.
bool measure(const SingleProduct &product, MatrixProduct &result) {
    const Stage &stage = *product.stage;
    const std::vector<std::string> arguments = stage.func.function().args();
    result.k = stage.reduction_extents[0];
    for (int i = 0; i < stage.rank(); ++i) {
        const bool in_a = product.a.variables.count(arguments[i]) > 0, in_b = product.b.variables.count(arguments[i]) > 0;
        if (in_a == in_b) {
            result.batch = result.batch * stage.extents[i];
            if (!in_a || !result.rows.empty()) {
                return false;
            }
        } else if (in_a) {
            result.rows.push_back(i);
            result.m = result.m * stage.extents[i];
        } else if (i + 1 == stage.rank()) {
            result.columns = i;
            result.n = stage.extents[i];
        } else {
            return false;
        }
    }
    return !result.rows.empty() && result.columns >= 0;
}

}  // namespace

std::optional<MatrixProduct> match_matrix_product(const Kernel &kernel, const GpuFacts &facts) {
    if (!facts.warpgroup_multiply || !facts.bulk_copy) {
        return std::nullopt;
    }
    const Algorithm &algorithm = kernel.algorithm;
    MatrixProduct result;
    std::optional<SingleProduct> first;
    for (const Stage &stage : algorithm.stages) {
        if (!stage.func.function().has_update_definition() && !stage.func.function().has_extern_definition()) {
            continue;
        }
        const auto product = match_single(stage, algorithm);
        if (!product) {
            return std::nullopt;
        }
        if (first) {
            // Products of one left operand, side by side; what is read is told by the tensor, for one kernel reads a tensor in one way.
            const bool alike = product->left.call->name == first->left.call->name && stage.extents == first->stage->extents &&
                               stage.reduction_extents == first->stage->reduction_extents && product->b.variables == first->b.variables &&
                               !product->left.computed && !product->right.computed && !first->left.computed && !first->right.computed;
            if (!alike) {
                return std::nullopt;
            }
        } else {
            first = product;
        }
        result.products.push_back(stage.name());
    }
    if (first) {
        result.computed_rows = first->left.computed;
        result.computed_columns = first->right.computed;
        result.row_bytes = first->left.call->type.bytes();
        result.column_bytes = first->right.call->type.bytes();
    }
    if (!first || !measure(*first, result) ||
        !collect_outputs(kernel, {result.products.begin(), result.products.end()}, result.outputs) || !place_in_anchor(algorithm, result)) {
        return std::nullopt;
    }
    return result;
}

namespace {

/// What a product takes on a tile, in cycles of a multiprocessor; only their order matters.
class TileCost {
public:
    TileCost(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) : facts_(facts) {
        const auto largest = [&](const Extent &e) { return std::max<std::int64_t>(e.bounds(symbols).max, 1); };
        products_ = static_cast<int>(product.products.size());
        row_bytes_ = product.row_bytes, column_bytes_ = product.column_bytes;
        computes_ = product.computed_rows || product.computed_columns;
        m_ = largest(product.m), n_ = largest(product.n), k_ = largest(product.k), batch_ = largest(product.batch);
    }
    std::int64_t steps() const { return ceil(k_, depth); }

    double operator()(const ProductTile &tile) const {
        const std::int64_t rows = tile.turned ? n_ : m_, columns = tile.turned ? m_ : n_;
        const std::int64_t blocks = batch_ * ceil(rows, tile.m) * ceil(columns, tile.n) * tile.parts;
        // Clusters of more than two blocks leave multiprocessors idle: groups of them have no multiple of four.
        const std::int64_t usable = tile.parts <= 2 || !tile.cluster ? facts_.multiprocessors : facts_.multiprocessors * 4 / 5;
        const double waves = static_cast<double>(ceil(blocks, usable));
        // A step: multiplies (the unit is not faster for fewer than 32 columns), or what comes from the L2 cache for it.
        const double multiply = products_ * tile.m * std::max(tile.n, 32) / 32.0, fetch = 2.5 * (tile.m + products_ * tile.n);
        const double computed = computes_ ? 350.0 * tile.m / (64 * tile.warpgroups) : 0;  // each warpgroup computes, then multiplies
        const double sums = static_cast<double>(tile.m) * tile.n * products_;
        const double exchanged = static_cast<double>(batch_) * m_ * n_ * products_ * 8 * tile.parts;  // bytes written and read by a second pass
        const double shared_sums = tile.parts == 1  ? 0
                                   : !tile.cluster  ? 4000 + exchanged / (32.0 * facts_.multiprocessors)
                                   : tile.parts > 2 ? 10000 + sums / 2
                                                    : 2000 + sums / 6;
        const double one = static_cast<double>(ceil(steps(), tile.parts)) * std::max(multiply + computed, fetch) + 1500 + sums / 16 + shared_sums;
        const double memory = static_cast<double>(batch_) * (row_bytes_ * m_ * k_ + column_bytes_ * products_ * n_ * k_ + 2 * m_ * n_) / (facts_.memory_bandwidth / 1.7e9);
        const double narrow_strips = tile.n > 64 && tile.n % 64 != 0 ? 1.03 : 1;
        return (std::max(waves * one, memory) + waves * one / 64) * narrow_strips;
    }

private:
    static std::int64_t ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
    const GpuFacts &facts_;
    int products_ = 1, row_bytes_ = 2, column_bytes_ = 2;
    bool computes_ = false;
    std::int64_t m_, n_, k_, batch_;
};

/// Widths of tiles whose left operand is computed in registers (device/multiply.h).
bool is_register_width(int width) { return width <= 64 || width == 96 || width == 128 || width == 192 || width == 256; }

/// Slots of the pipeline that shared memory holds beside the tiles that results are staged in; 0 where they are too few.
int stages_of(const ProductTile &tile, int products, const GpuFacts &facts) {
    const std::int64_t slot = (tile.m + products * tile.n) * depth * 2, staging = 2L * tile.warpgroups * 64 * 128;
    const auto stages = static_cast<int>(std::min<std::int64_t>((facts.shared_per_block - staging - 2048) / slot, 8));
    return stages < 2 ? 0 : stages;
}

}  // namespace

std::vector<ProductTile> product_tiles(const MatrixProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    const TileCost cost(product, symbols, facts);
    std::vector<std::pair<double, ProductTile>> scored;
    const auto consider = [&](ProductTile tile) {
        const int products = static_cast<int>(product.products.size()), sums = tile.m / (64 * tile.warpgroups) * tile.n / 2 * products;
        tile.stages = sums <= most_sums ? stages_of(tile, products, facts) : 0;
        for (tile.parts = 1; tile.stages > 0 && tile.parts <= facts.largest_cluster; tile.parts *= 2) {
            const bool shares = tile.n % (8 * tile.parts) == 0 && cost.steps() >= 4 * tile.parts && product.k.is_constant();
            for (tile.cluster = true; tile.parts == 1 || shares; tile.cluster = false) {
                scored.emplace_back(cost(tile), tile);
                if (tile.parts == 1 || !tile.cluster) {
                    break;
                }
            }
        }
    };
    for (const auto &[height, width, groups] : {std::tuple{128, 256, 2}, {256, 128, 2}, {128, 192, 2}, {128, 160, 2}, {128, 128, 2}, {256, 64, 2}, {128, 64, 2}, {64, 256, 1},
                                                {64, 128, 1}, {64, 64, 1}, {128, 32, 2}, {64, 32, 1}, {192, 128, 3}, {192, 192, 3}, {128, 96, 2}, {128, 224, 2}}) {
        if (!product.computed_columns && (!product.computed_rows || is_register_width(width))) {
            consider({height, width, groups});
        }
    }
    // Few rows: the columns' operand fills the unit's 64 rows.
    std::vector<int> widths = product.products.size() == 1 && !product.computed_rows ? std::vector<int>{8, 16, 32, 48, 64} : std::vector<int>();
    if (product.computed_columns) {
        widths.insert(widths.end(), {96, 128, 192});
    }
    for (const int width : widths) {
        for (const int height : {64, 128}) {
            ProductTile tile{height, width, height / 64};
            tile.turned = true;
            consider(tile);
        }
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    constexpr std::size_t most = 24;
    std::vector<ProductTile> tiles;
    for (const auto &[time, tile] : scored) {
        if (tiles.size() < most) {
            tiles.push_back(tile);
        }
    }
    return tiles;
}

Directives product_schedule(const MatrixProduct &product, const ProductTile &tile) {
    ScheduleBuilder builder;
    const auto argument = [](int i) { return "d" + std::to_string(i); };
    const std::string &anchor = product.outputs.front();
    StageSchedule s = builder[anchor];
    const int height = tile.turned ? tile.n : tile.m, width = tile.turned ? tile.m : tile.n;
    std::vector<std::string> grid{"no"};
    if (product.rows.empty()) {
        s.split(argument(product.columns), "no", "ni", width);
    } else {
        std::string rows = argument(product.rows.front());
        for (std::size_t i = 1; i < product.rows.size(); ++i) {
            const std::string fused = i + 1 == product.rows.size() ? "m" : "m" + std::to_string(i);
            s.fuse(rows, argument(product.rows[i]), fused);
            rows = fused;
        }
        s.tile(rows, argument(product.columns), "mo", "no", "mi", "ni", height, width);
        grid.push_back("mo");
        for (int i = product.rows.front() - 1; i >= 0; --i) {
            grid.push_back(argument(i));
        }
    }
    grid.size() == 1 ? s.gpu_blocks(grid[0]) : grid.size() == 3 ? s.gpu_blocks(grid[0], grid[1], grid[2]) : s.gpu_blocks(grid[0], grid[1]);
    for (const std::string &name : product.products) {
        StageSchedule each = builder[name];
        if (name != anchor) {
            each.compute_at(anchor, "no").store_in("register");
        }
        each.tensor_core(64, tile.n, 16);
    }
    StageSchedule p = builder[product.products.front()];
    p.warpgroups(tile.warpgroups).split("r0", "ko", "ki", depth).pipeline("ko", tile.stages).producer_warps(1).raster(tile.raster);
    if (tile.parts > 1) {
        p.split_blocks("ko", tile.parts);
        if (tile.cluster) {
            p.cluster(tile.parts, 1);
        }
    } else {
        p.persistent();
    }
    for (std::size_t i = 1; i < product.outputs.size(); ++i) {
        if (std::find(product.products.begin(), product.products.end(), product.outputs[i]) == product.products.end()) {
            builder[product.outputs[i]].compute_with(anchor, "no");
        }
    }
    return builder.directives;
}

}  // namespace tilewright
