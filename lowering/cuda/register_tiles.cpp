#include "lowering/cuda/register_tiles.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/schedule/builder.h"
#include "lowering/cuda/expanded_reads.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::int64_t few_rows = 8;
constexpr std::int64_t rows_of_streams = 2;  // with more, multiply-adds and conversions take as long as the memory
constexpr int access_bytes = 16;

std::string argument(int i) { return "d" + std::to_string(i); }

/// How an operand is read: what it is computed from, or of several tensors the one that varies along most variables.
struct Reading {
    bool plain = false;      ///< that tensor is read at variables alone
    bool alone = false;      ///< and no other
    std::string fast, tensor;  ///< the variable along which it lies in memory
    int bytes = 4;
};
Reading reading_of(const Expr &operand, const Algorithm &algorithm) {
    Reading result;
    int reads = 0;
    std::size_t most = 0;
    visit_reads(operand, [&](const hi::Call *call) {
        std::size_t variables = 0;
        for (const Expr &place : call->args) {
            variables += place.as<hi::Variable>() ? 1 : 0;
        }
        ++reads;
        if (reads > 1 && variables <= most) {
            return;
        }
        most = variables;
        const TensorInput *input = algorithm.find_input(call->name);
        result = {input && variables == call->args.size(), false, "", call->name, call->type.bytes()};
        for (std::size_t i = 0; i < call->args.size(); ++i) {
            const auto *variable = call->args[i].as<hi::Variable>();
            const bool fast = input ? input->meta.strides[i] == Extent(1) : i + 1 == call->args.size();
            if (variable && fast) {
                result.fast = variable->name;
            }
        }
    });
    result.alone = result.plain && reads == 1;
    return result;
}

/// Extents of a stage along which it has more than one place.
std::vector<Extent> real_extents(const Stage &stage) {
    std::vector<Extent> extents;
    std::copy_if(stage.extents.begin(), stage.extents.end(), std::back_inserter(extents), [](const Extent &e) { return !(e == Extent(1)); });
    return extents;
}

/// Whether `output` is computed from the product, always at its own place; axes of one place may be left out.
class Follower {
public:
    Follower(const Algorithm &algorithm, const std::string &product) : algorithm_(algorithm), product_(product) {}
    bool follows(const Stage &output) {
        std::vector<Expr> places;
        for (const std::string &name : output.func.function().args()) {
            places.push_back(hi::Variable::make(Halide::Int(32), name));
        }
        wanted_.clear();
        for (int i = 0; i < output.rank(); ++i) {
            if (!(output.extents[i] == Extent(1))) {
                wanted_.push_back(output.func.function().args()[i]);
            }
        }
        reads_ = false;
        return walk(output, places, 0) && reads_;
    }

private:
    bool walk(const Stage &stage, const std::vector<Expr> &places, int depth) {
        if (stage.func.function().has_update_definition() || stage.func.function().has_extern_definition() || depth > 64) {
            return depth > 0 && !depends(stage.name(), 0);
        }
        std::map<std::string, Expr> names;
        const std::vector<std::string> arguments = stage.func.function().args();
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            names[arguments[i]] = places[i];
        }
        for (const Read &read : reads_of(stage)) {
            if (read.from_input) {
                continue;
            }
            std::vector<Expr> at;
            for (const Expr &index : read.indices) {
                at.push_back(substitute_variables(index, names));
            }
            if (read.producer == product_) {
                reads_ = true;
                if (!stands_at(at)) {
                    return false;
                }
            } else if (const Stage *producer = algorithm_.find_stage(read.producer); !producer || !walk(*producer, at, depth + 1)) {
                return false;
            }
        }
        return true;
    }
    bool stands_at(const std::vector<Expr> &places) const {
        const Stage &product = *algorithm_.find_stage(product_);
        std::vector<std::string> names;
        for (int i = 0; i < product.rank(); ++i) {
            if (!(product.extents[i] == Extent(1))) {
                names.push_back(as_variable(places[i]));
            }
        }
        return names == wanted_;
    }
    bool depends(const std::string &reader, int depth) const {
        const Stage *stage = algorithm_.find_stage(reader);
        for (const Read &read : stage && depth < 64 ? reads_of(*stage) : std::vector<Read>()) {
            if (!read.from_input && read.producer != reader && (read.producer == product_ || depends(read.producer, depth + 1))) {
                return true;
            }
        }
        return false;
    }

    const Algorithm &algorithm_;
    const std::string &product_;
    std::vector<std::string> wanted_;
    bool reads_ = false;
};

/// Arguments from the largest stride of what is stored to the smallest.
std::vector<int> memory_order(const Algorithm &algorithm, const Stage &stage, const std::vector<std::string> &outputs) {
    std::vector<int> order(stage.rank());
    for (int i = 0; i < stage.rank(); ++i) {
        order[i] = i;
    }
    for (const TensorOutput &output : algorithm.outputs) {
        const std::vector<Extent> &strides = output.meta.strides;
        const bool own = output.stage == stage.name() || std::find(outputs.begin(), outputs.end(), output.stage) != outputs.end();
        if (own && strides.size() == order.size() && std::all_of(strides.begin(), strides.end(), [](const Extent &e) { return e.is_constant(); })) {
            std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a].value() > strides[b].value(); });
            break;
        }
    }
    return order;
}

std::int64_t largest(const Extent &e, const SymbolRanges &symbols) { return std::max<std::int64_t>(e.bounds(symbols).max, 1); }

}  // namespace

std::optional<RegisterProduct> match_register_product(const Kernel &kernel, const std::string &name) {
    const Algorithm &algorithm = kernel.algorithm;
    const Stage &stage = *algorithm.find_stage(name);
    const auto fold = stage.func.function().has_update_definition() ? match_fold(stage.func) : std::nullopt;
    if (!fold || fold->combiner != Combiner::sum || fold->terms.size() != 1 || fold->scan_axis >= 0 || stage.rank() == 0) {
        return std::nullopt;
    }
    const Expr term = inline_lets(fold->terms[0]);
    const auto *product = term.as<hi::Mul>();
    if (!product || !contains_read(product->a) || !contains_read(product->b)) {
        return std::nullopt;
    }
    RegisterProduct result;
    result.stage = name;
    result.sum_bytes = stage.func.types()[0].bytes();
    Follower follower(algorithm, result.stage);
    for (const TensorOutput &output : algorithm.outputs) {
        const Stage &other = *algorithm.find_stage(output.stage);
        const bool known = std::find(result.outputs.begin(), result.outputs.end(), output.stage) != result.outputs.end();
        if (output.stage != name && !known && real_extents(other) == real_extents(stage) && follower.follows(other)) {
            result.outputs.push_back(output.stage);
        }
    }
    const auto read_axes = [](const Expr &e) {
        std::set<std::string> names;
        for (const std::string &n : variables_of(e)) {
            names.insert(n);
        }
        return names;
    };
    Expr left = product->a, right = product->b;
    std::set<std::string> in_left = read_axes(left), in_right = read_axes(right);
    const std::vector<int> order = memory_order(algorithm, stage, result.outputs);
    int fast = order.back();
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
        if (!(stage.extents[*i] == Extent(1))) {
            fast = *i;
            break;
        }
    }
    if (in_left.count(argument(fast)) && !in_right.count(argument(fast))) {
        std::swap(left, right);
        std::swap(in_left, in_right);
    }
    for (int i : order) {
        const bool a = in_left.count(argument(i)) > 0, b = in_right.count(argument(i)) > 0;
        (a == b ? result.planes : a ? result.rows : result.columns).push_back(i);
    }
    // Outer columns count as planes where the inner ones fill a tile.
    while (result.columns.size() > 1) {
        Extent rest = 1;
        for (std::size_t i = 1; i < result.columns.size(); ++i) {
            rest = rest * stage.extents[result.columns[i]];
        }
        if (rest.bounds(algorithm.symbols).min < 512) {
            break;
        }
        result.planes.push_back(result.columns.front());
        result.columns.erase(result.columns.begin());
    }
    const auto sizes = [&](const std::vector<int> &arguments) {
        Extent e = 1;
        for (int i : arguments) {
            e = e * stage.extents[i];
        }
        return e;
    };
    result.batch = sizes(result.planes);
    result.m = sizes(result.rows);
    result.n = sizes(result.columns);
    const auto rvars = stage.func.function().update(0).schedule().rvars();
    for (std::size_t i = 0; i < rvars.size(); ++i) {
        result.variables.push_back(rvars[i].var);
        result.terms.push_back(stage.reduction_extents[i]);
        result.k = result.k * stage.reduction_extents[i];
    }
    const Reading l = reading_of(expand_reads(algorithm, left), algorithm), r = reading_of(expand_reads(algorithm, right), algorithm);
    const bool computed = reading_of(left, algorithm).tensor != l.tensor || reading_of(right, algorithm).tensor != r.tensor;
    result.rows_along_k = l.fast == result.variables[0];
    result.columns_along_k = r.fast == result.variables[0];
    result.streams = l.plain && r.plain && result.variables.size() == 1;
    result.direct = result.streams && l.alone && r.alone && !computed;
    result.row_tensor = l.tensor;
    result.column_tensor = r.tensor;
    result.row_bytes = l.bytes;
    result.column_bytes = r.bytes;
    return result;
}

std::vector<RegisterTile> register_tiles(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    const std::int64_t m = largest(product.m, symbols), n = largest(product.n, symbols), batch = largest(product.batch, symbols), k = largest(product.k, symbols);
    if (m < 4 || n < 8) {
        return {};
    }
    struct Scored {
        RegisterTile tile;
        double cost;
    };
    std::vector<Scored> scored;
    for (const RegisterTile &shape : {RegisterTile{8, 8, 16, 16}, {8, 8, 8, 16}, {8, 4, 16, 16}, {4, 8, 16, 16}, {8, 4, 8, 16}, {4, 4, 16, 16}, {4, 4, 8, 16}, {4, 4, 8, 8}, {4, 4, 4, 8}, {4, 4, 2, 16}}) {
        RegisterTile tile = shape;
        if (product.sum_bytes > 4 && tile.rows * tile.columns > 32) {
            continue;
        }
        tile.at_once = product.sum_bytes > 4 || tile.rows * tile.columns > 32 ? 2 : 4;
        const std::int64_t height = tile.rows * tile.row_threads, width = tile.columns * tile.column_threads, threads = tile.row_threads * tile.column_threads;
        const std::int64_t blocks = batch * ((m + height - 1) / height) * ((n + width - 1) / width);
        const std::int64_t fit = std::max<std::int64_t>(tile.rows * tile.columns > 32 ? 512 / threads : 1024 / threads, 1);
        const std::int64_t together = std::min<std::int64_t>(fit, (blocks + facts.multiprocessors - 1) / facts.multiprocessors);
        const std::int64_t waves = (blocks + facts.multiprocessors * together - 1) / (facts.multiprocessors * together);
        // Cycles of one term on a multiprocessor: multiply-adds and loads of all threads, and its share of waiting for a step's loads.
        const double work = static_cast<double>(threads * together) / 128 * (tile.rows * tile.columns + 1.5 * (tile.rows + tile.columns));
        scored.push_back({tile, static_cast<double>(waves) * (work + 30)});
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored &a, const Scored &b) { return a.cost < b.cost; });
    // Tiles of both operands in shared memory, where they are plain tensors.
    const bool stages = product.direct && product.sum_bytes <= 4 && product.row_tensor != product.column_tensor && k >= 32;
    std::vector<RegisterTile> tiles;
    for (const Scored &s : scored) {
        if (stages) {
            RegisterTile staged = s.tile;
            staged.staged = true;
            staged.at_once = 16;
            tiles.push_back(staged);
        }
        if (!stages || tiles.size() < 10) {
            tiles.push_back(s.tile);
        }
    }
    // Few tiles and many terms: blocks share the terms, and a pass of its own adds their sums.
    const RegisterTile &best = tiles.front();
    const std::int64_t height = best.rows * best.row_threads, width = best.columns * best.column_threads;
    const std::int64_t blocks = batch * ((m + height - 1) / height) * ((n + width - 1) / width);
    const bool splits = product.variables.size() == 1 && product.k.is_constant() && blocks * 2 <= facts.multiprocessors && k >= 1024;
    if (splits) {
        RegisterTile shared = best;
        shared.parts = static_cast<int>(std::min<std::int64_t>(2 * facts.multiprocessors / blocks, k / 256));
        tiles.insert(tiles.begin(), shared);
    }
    return tiles;
}

std::vector<ProductStream> product_streams(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts) {
    const std::int64_t m = largest(product.m, symbols), n = largest(product.n, symbols), batch = largest(product.batch, symbols);
    const std::int64_t few = std::min(m, n), many = std::max(m, n), k = product.k.bounds(symbols).min;
    if (!product.streams || few > few_rows || many < 32 || k < 128) {
        return {};
    }
    const bool along_k = n >= m ? product.columns_along_k : product.rows_along_k;
    std::vector<ProductStream> tiles;
    if (along_k) {
        for (const int rows : few <= 2 ? std::vector<int>{2, 4, 1} : std::vector<int>{4, 2}) {
            ProductStream tile{true, 32, rows, few <= 2 ? 8 / rows : few <= 4 ? 2 : 1, 1};
            if (batch * many / (8 * rows) < facts.multiprocessors) {
                tile.lanes = batch * many / (2 * rows) < facts.multiprocessors ? 256 : 128;
            }
            tiles.push_back(tile);
        }
        return tiles;
    }
    const int width = std::max(access_bytes / (n >= m ? product.column_bytes : product.row_bytes), 1);
    const std::int64_t blocks = std::max<std::int64_t>(batch * many / (32 * width), 1);
    ProductStream tile{false, 8, width, few <= 4 ? 4 : 2, 1};
    if (blocks < facts.multiprocessors && product.k.is_constant() && k >= 512) {
        tile.parts = static_cast<int>(std::clamp<std::int64_t>(2 * facts.multiprocessors / blocks, 1, k / 128));
        tiles.push_back(tile);
        tile.parts = 1;
        tile.lanes = 32;
    }
    tiles.push_back(tile);
    return tiles;
}

bool streams_best(const Kernel &kernel, const std::string &stage, const GpuFacts &facts) {
    const auto product = match_register_product(kernel, stage);
    const SymbolRanges &symbols = kernel.algorithm.symbols;
    return product && std::min(largest(product->m, symbols), largest(product->n, symbols)) <= rows_of_streams && !product_streams(*product, symbols, facts).empty();
}

namespace {

/// Directives of one product, with its arguments gathered into planes, rows and columns.
class ProductDirectives {
public:
    ProductDirectives(const RegisterProduct &product, Directives &into) : product_(product), into_(into), stage_(into, product.stage) {
        std::vector<std::string> order;
        for (const auto *arguments : {&product.planes, &product.rows, &product.columns}) {
            for (int i : *arguments) {
                order.push_back(argument(i));
            }
        }
        reorder(order);
        planes_ = fuse(product.planes, "planes");
        rows_ = fuse(product.rows, "rows");
        columns_ = fuse(product.columns, "columns");
    }

    void tile(const RegisterTile &tile) {
        std::vector<std::string> blocks, threads, registers;
        const bool by_columns = share(columns_, "column", tile.column_threads, tile.columns, threads, registers, blocks);
        share(rows_, "row", tile.row_threads, tile.rows, threads, registers, blocks);
        std::vector<std::string> terms = walk(tile.at_once, tile.parts);
        if (by_columns) {
            stage_.vectorize("column_lane");
        }
        finish(blocks, threads, registers, terms);
        if (tile.staged) {
            for (const std::string &tensor : {product_.row_tensor, product_.column_tensor}) {
                StageSchedule(into_, tensor).in(product_.stage).compute_at(product_.stage, "step").store_in("shared");
            }
        }
        share_pass(blocks, tile.parts);
    }

    void stream(const ProductStream &tile, bool large_is_columns, std::int64_t few) {
        const std::string large = large_is_columns ? columns_ : rows_, small = large_is_columns ? rows_ : columns_;
        const int width = std::max(access_bytes / (large_is_columns ? product_.column_bytes : product_.row_bytes), 1);
        const std::string &variable = product_.variables[0];
        std::vector<std::string> blocks, threads, registers, terms;
        if (!small.empty() && few > 1) {
            stage_.split(small, "few_block", "few", few).unroll("few");
            registers.push_back("few");
        }
        if (tile.along_k) {
            const int warps = std::max(256 / tile.lanes, 1);
            stage_.split(large, "block", "in_block", static_cast<std::int64_t>(warps) * tile.rows).split("in_block", "warp", "row", tile.rows).unroll("row");
            stage_.split(variable, "vectors", "lane", width).unroll("lane").split("vectors", "steps", "thread", tile.lanes).split("steps", "step", "at_once", tile.at_once).unroll("at_once");
            threads = {"thread", "warp"};
            registers.insert(registers.end(), {"row", "at_once", "lane"});
        } else {
            stage_.split(large, "vectors", "lane", width).vectorize("lane").split("vectors", "block", "thread", 32);
            stage_.split(variable, "steps", "share", tile.lanes).split("steps", "step", "at_once", tile.at_once).unroll("at_once");
            threads = {"thread", "share"};
            registers.insert(registers.end(), {"at_once", "lane"});
        }
        blocks = {"block"};
        if (!small.empty()) {
            blocks.push_back(few > 1 ? "few_block" : small);
        }
        stage_.reduce_across(tile.along_k && tile.lanes <= 32 ? "warp" : "block");
        if (tile.parts > 1) {
            stage_.split_blocks("step", tile.parts);
        }
        finish(blocks, threads, registers, {"step"});
        share_pass(blocks, tile.parts);
    }

private:
    void reorder(const std::vector<std::string> &outermost_first) {
        if (outermost_first.size() < 2) {
            return;
        }
        Directive directive{product_.stage, "reorder", {}, {}, {}};
        directive.arguments.assign(outermost_first.rbegin(), outermost_first.rend());
        into_.push_back(directive);
    }
    std::string fuse(const std::vector<int> &arguments, const std::string &name) {
        if (arguments.empty()) {
            return "";
        }
        std::string fused = argument(arguments[0]);
        for (std::size_t i = 1; i < arguments.size(); ++i) {
            const std::string next = i + 1 == arguments.size() ? name : name + std::to_string(i);
            stage_.fuse(fused, argument(arguments[i]), next);
            fused = next;
        }
        return fused;
    }

    /// An axis over blocks, groups of 4 neighbouring elements a thread, and several of those groups apart.
    bool share(const std::string &axis, const std::string &name, int threads_wanted, int sums, std::vector<std::string> &threads, std::vector<std::string> &registers,
               std::vector<std::string> &blocks) {
        if (axis.empty()) {
            return false;
        }
        constexpr int group = 4;
        stage_.split(axis, name + "_block", name + "_in_block", static_cast<std::int64_t>(threads_wanted) * sums);
        std::string rest = name + "_in_block";
        if (sums > group) {
            stage_.split(rest, name + "_group", name + "_rest", static_cast<std::int64_t>(threads_wanted) * group).unroll(name + "_group");
            registers.push_back(name + "_group");
            rest = name + "_rest";
        }
        stage_.split(rest, name + "_thread", name + "_lane", group);
        if (name != "column") {
            stage_.unroll(name + "_lane");
        }
        registers.push_back(name + "_lane");
        threads.push_back(name + "_thread");
        blocks.push_back(name + "_block");
        return true;
    }

    /// Loops over the terms, outermost first.
    std::vector<std::string> walk(int at_once, int parts) {
        std::vector<std::string> terms(product_.variables.rbegin(), product_.variables.rend());
        const std::string inner = terms.back();
        if (product_.variables.size() == 1) {
            stage_.split(inner, "step", "at_once", at_once).unroll("at_once");
            terms = {"step", "at_once"};
            if (parts > 1) {
                stage_.split_blocks("step", parts);
            }
        } else if (product_.terms[0].is_constant() && product_.terms[0].value() <= 4) {
            stage_.unroll(inner);
        }
        return terms;
    }

    void finish(const std::vector<std::string> &blocks, const std::vector<std::string> &threads, const std::vector<std::string> &registers, const std::vector<std::string> &terms) {
        std::vector<std::string> order;
        if (!planes_.empty()) {
            order.push_back(planes_);
        }
        order.insert(order.end(), blocks.rbegin(), blocks.rend());
        order.insert(order.end(), threads.rbegin(), threads.rend());
        order.insert(order.end(), terms.begin(), terms.end());
        for (const std::string &loop : registers) {
            if (std::find(order.begin(), order.end(), loop) == order.end()) {
                order.push_back(loop);
            }
        }
        reorder(order);
        bind("gpu_blocks", blocks, planes_);
        bind("gpu_threads", threads, "");
    }
    void bind(const char *directive, std::vector<std::string> loops, const std::string &last) {
        if (!last.empty()) {
            loops.push_back(last);
        }
        Directive d{product_.stage, directive, {}, {}, {}};
        d.arguments.assign(loops.begin(), loops.end());
        into_.push_back(d);
    }
    void share_pass(const std::vector<std::string> &blocks, int parts) {
        for (const std::string &output : parts > 1 ? std::vector<std::string>() : product_.outputs) {
            StageSchedule(into_, output).compute_with(product_.stage, blocks.front());
        }
    }

    const RegisterProduct &product_;
    Directives &into_;
    StageSchedule stage_;
    std::string planes_, rows_, columns_;
};

}  // namespace

void schedule_register_tile(const RegisterProduct &product, const RegisterTile &tile, Directives &into) { ProductDirectives(product, into).tile(tile); }

void schedule_stream(const RegisterProduct &product, const ProductStream &tile, const SymbolRanges &symbols, Directives &into) {
    const std::int64_t m = largest(product.m, symbols), n = largest(product.n, symbols);
    ProductDirectives(product, into).stream(tile, n >= m, std::min(m, n));
}

}  // namespace tilewright
