#include "lowering/fusion/stage_graph.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/float8.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Of an element to another type, floats of 8 bits to float32 among them.
bool is_conversion(const hi::Call *call) {
    const std::string_view name = math::primitive_name(call);
    return name == "convert" || name == "explicit_cast" || math::float8_of(call);
}

// A value is computed again for each kernel that reads it only below these bounds; they keep repeated inlining from multiplying.
constexpr int cheap_cost = 4;
constexpr std::size_t largest_read_count = 24;

/// Counts operations on values. Indices and conditions on indices are free: they are the address arithmetic of any access.
class CostVisitor : public hi::IRGraphVisitor {
public:
    int cost = 0;
    bool expensive = false;

    using hi::IRGraphVisitor::visit;

    template<typename Node> void count(const Node *op, int operations) {
        cost += carries_value(op) ? operations : 0;
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Add *op) override { count(op, 1); }
    void visit(const hi::Sub *op) override { count(op, 1); }
    void visit(const hi::Mul *op) override { count(op, 1); }
    void visit(const hi::Min *op) override { count(op, 1); }
    void visit(const hi::Max *op) override { count(op, 1); }
    void visit(const hi::Div *op) override {
        expensive |= carries_value(op);
        count(op, 4);
    }
    void visit(const hi::Mod *op) override { count(op, 4); }
    void visit(const hi::EQ *op) override { count(op, 1); }
    void visit(const hi::NE *op) override { count(op, 1); }
    void visit(const hi::LT *op) override { count(op, 1); }
    void visit(const hi::LE *op) override { count(op, 1); }
    void visit(const hi::GT *op) override { count(op, 1); }
    void visit(const hi::GE *op) override { count(op, 1); }
    void visit(const hi::Select *op) override {
        cost += contains_read(op->condition) ? 1 : 0;
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Call *op) override {
        if (is_read(op)) {
            return;
        }
        const std::string_view name = math::primitive_name(op);
        static const std::set<std::string_view> simple{
            "add",     "sub",      "mul",         "minimum",    "maximum",     "neg",         "abs",        "eq",
            "ne",      "lt",       "le",          "gt",         "ge",          "isnan",       "isinf",      "isfinite",
            "signbit", "copysign", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"};
        if (is_conversion(op) || name == "checked_index") {
            // free
        } else if (simple.count(name)) {
            cost += 1;
        } else if (!name.empty()) {
            cost += 8;
            expensive = true;
        }
        hi::IRGraphVisitor::visit(op);
    }

private:
    static bool carries_value(const hi::BaseExprNode *op) { return contains_read(Expr(op)) || !op->type.is_int(); }
};

/// The expression without the conversions around it; `narrows` is set where one yields fewer bytes than it takes.
Expr strip_conversions(Expr e, bool &narrows) {
    while (const auto *call = e.as<hi::Call>()) {
        if (!is_conversion(call)) {
            break;
        }
        narrows |= call->type.bytes() < call->args[0].type().bytes();
        e = call->args[0];
    }
    return e;
}

bool has_indirect_index(const hi::Call *call) { return std::any_of(call->args.begin(), call->args.end(), contains_read); }

/// Whether a value is moved, not computed: reads, conversions that do not narrow, constants, and selections by index among them.
bool moves_value(const Expr &value) {
    bool narrows = false;
    const Expr e = strip_conversions(value, narrows);
    if (narrows) {
        return false;
    }
    if (const auto *select = e.as<hi::Select>()) {
        return !contains_read(select->condition) && moves_value(select->true_value) && moves_value(select->false_value);
    }
    if (const auto *call = e.as<hi::Call>(); call && is_read(call)) {
        return !has_indirect_index(call);
    }
    return !contains_read(e);
}

/// The layout over a source's dimensions of a tensor that holds it permuted; nothing where the map is no permutation.
std::optional<TensorMeta> permuted_source(const TensorMeta &meta, const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes,
                                          const std::vector<Extent> &sizes) {
    TensorMeta source;
    source.dtype = meta.dtype;
    source.sizes = sizes;
    std::vector<bool> used(axes.size(), false);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const auto *variable = indices[i].as<hi::Variable>();
        const auto axis = std::find_if(axes.begin(), axes.end(), [&](const IndexAxis &a) { return variable && a.name == variable->name; });
        const std::size_t place = static_cast<std::size_t>(axis - axes.begin());
        if (axis == axes.end() && sizes[i] == Extent(1)) {
            source.strides.push_back(1);
            continue;
        }
        if (axis == axes.end() || used[place] || !(axis->extent == sizes[i])) {
            return std::nullopt;
        }
        used[place] = true;
        source.strides.push_back(meta.strides[place]);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (!used[i] && !(axes[i].extent == Extent(1))) {
            return std::nullopt;
        }
    }
    return source;
}

}  // namespace

int arithmetic_cost(const std::vector<Expr> &values, bool &expensive) {
    CostVisitor visitor;
    for (const Expr &value : values) {
        value.accept(&visitor);
    }
    expensive |= visitor.expensive;
    return visitor.cost;
}

StageGraph::StageGraph(const Algorithm &algorithm, bool writes_through_maps) : algorithm_(algorithm) {
    nodes_.resize(algorithm.stages.size());
    effective_.resize(algorithm.stages.size());
    std::unordered_map<std::string, int> &stages = stage_indices_, &inputs = input_indices_;
    for (std::size_t i = 0; i < algorithm.stages.size(); ++i) {
        nodes_[i].stage = &algorithm.stages[i];
        stages.emplace(algorithm.stages[i].name(), static_cast<int>(i));
    }
    for (std::size_t i = 0; i < algorithm.inputs.size(); ++i) {
        inputs.emplace(algorithm.inputs[i].name(), static_cast<int>(i));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        StageNode &node = nodes_[i];
        for (const Read &read : reads_of(*node.stage)) {
            ResolvedRead resolved{-1, -1, read.tuple_index, read.indices};
            if (const auto stage = stages.find(read.producer); stage != stages.end()) {
                resolved.producer = stage->second;
                internal_assert(resolved.producer < static_cast<int>(i), "stage {} reads {}, which does not stand before it", node.name(),
                                read.producer);
                if (std::find(node.producers.begin(), node.producers.end(), resolved.producer) == node.producers.end()) {
                    node.producers.push_back(resolved.producer);
                }
            } else {
                const auto input = inputs.find(read.producer);
                internal_assert(input != inputs.end(), "stage {} reads {}, which is neither a stage nor an input", node.name(),
                                read.producer);
                resolved.input = input->second;
            }
            node.reads.push_back(std::move(resolved));
        }
        resolve(static_cast<int>(i));
    }
    for (const TensorOutput &output : algorithm.outputs) {
        const auto found = stages.find(output.stage);
        internal_assert(found != stages.end(), "output {} names stage {}, which there is not", output.name, output.stage);
        outputs_.push_back(writes_through_maps ? written_by(found->second, output)
                                               : GraphOutput{found->second, output.tuple_index, {output.name, output.meta}});
        nodes_[outputs_.back().node].is_output = true;
    }
    mark_live();
    mark_virtual();
}

GraphOutput StageGraph::written_by(int index, const TensorOutput &output) const {
    TensorMeta meta = output.meta;
    meta.offset = 0;
    GraphOutput result{index, output.tuple_index, {output.name, meta}};
    // One map at a time, as long as each place of its source is written by exactly one place of it.
    while (nodes_[result.node].is_map && nodes_[result.node].reads[0].producer >= 0) {
        const StageNode &map = nodes_[result.node];
        const ResolvedRead &read = map.reads[0];
        const std::vector<Extent> &sizes = nodes_[read.producer].stage->extents;
        const SamplePoints samples(map.axes, algorithm_.symbols);
        auto source_meta = permuted_source(result.tensor.meta, read.indices, map.axes, sizes);
        if (!source_meta && result.tensor.meta.is_contiguous() && is_reshape(read.indices, map.axes, sizes, samples)) {
            source_meta = TensorMeta::contiguous(result.tensor.meta.dtype, sizes);
        }
        if (!source_meta) {
            break;
        }
        result.node = read.producer;
        result.tuple_index = read.tuple_index;
        result.tensor.meta = *source_meta;
    }
    return result;
}

int StageGraph::find_stage(const std::string &name) const {
    const auto found = stage_indices_.find(name);
    return found == stage_indices_.end() ? -1 : found->second;
}

int StageGraph::find_input(const std::string &name) const {
    const auto found = input_indices_.find(name);
    return found == input_indices_.end() ? -1 : found->second;
}

void StageGraph::resolve(int index) {
    StageNode &node = nodes_[index];
    node.form = classify(*node.stage);
    const hi::Function function = node.stage->func.function();
    for (std::size_t i = 0; i < function.args().size(); ++i) {
        node.axes.push_back({function.args()[i], node.stage->extents[i]});
    }
    if (function.has_update_definition()) {
        const auto &variables = function.update(0).schedule().rvars();
        for (std::size_t i = 0; i < variables.size(); ++i) {
            node.variables.push_back({variables[i].var, node.stage->reduction_extents[i]});
        }
    }
    measure(node);
}

void StageGraph::measure(StageNode &node) {
    const std::vector<Expr> values = terms_of(*node.stage);
    node.cost = arithmetic_cost(values, node.is_expensive);
    if (node.form != Form::pointwise) {
        return;
    }
    node.is_view = std::all_of(values.begin(), values.end(), moves_value);
    if (values.size() == 1) {
        const auto *call = values[0].as<hi::Call>();
        node.is_map = call && is_read(call);
    }
}

void StageGraph::mark_live() {
    for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
        nodes_[i].is_live |= nodes_[i].is_output;
        if (nodes_[i].is_live) {
            for (int producer : nodes_[i].producers) {
                nodes_[producer].is_live = true;
            }
        }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].is_live) {
            for (int producer : nodes_[i].producers) {
                nodes_[producer].readers.push_back(static_cast<int>(i));
            }
        }
    }
}

void StageGraph::mark_virtual() {
    std::vector<int> total_cost(nodes_.size(), 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        StageNode &node = nodes_[i];
        if (!node.is_live || node.form != Form::pointwise || node.stage->func.outputs() != 1) {
            continue;
        }
        total_cost[i] = node.cost;
        for (int producer : node.producers) {
            total_cost[i] += nodes_[producer].is_virtual ? total_cost[producer] : 0;
        }
        if (!node.is_view && (node.is_expensive || total_cost[i] > cheap_cost || node.readers.size() < 2)) {
            continue;
        }
        const std::vector<EffectiveRead> &reads = effective_reads(static_cast<int>(i));
        if (reads.size() > largest_read_count || total_cost[i] > 8 * cheap_cost) {
            continue;
        }
        // Arithmetic on whole tensors is not repeated: only what is made of indices, constants and smaller tensors.
        const bool reads_whole = std::any_of(reads.begin(), reads.end(), [&](const EffectiveRead &read) {
            const std::vector<Extent> &sizes =
                read.producer >= 0 ? nodes_[read.producer].stage->extents : algorithm_.inputs[read.input].meta.sizes;
            return product(sizes) == product(node.stage->extents) && node.stage->rank() > 0;
        });
        node.is_virtual = node.is_view || !reads_whole;
    }
}

const std::vector<EffectiveRead> &StageGraph::effective_reads(int index) const {
    if (effective_[index]) {
        return *effective_[index];
    }
    const StageNode &node = nodes_[index];
    std::vector<IndexAxis> axes = node.axes;
    axes.insert(axes.end(), node.variables.begin(), node.variables.end());
    const SamplePoints samples(axes, algorithm_.symbols);
    std::vector<EffectiveRead> result;
    const auto add = [&](EffectiveRead read) {
        for (Expr &e : read.indices) {
            e = simplest_index(e, axes, samples);
        }
        for (const EffectiveRead &other : result) {
            if (other.producer == read.producer && other.input == read.input && other.tuple_index == read.tuple_index &&
                std::equal(other.indices.begin(), other.indices.end(), read.indices.begin(), read.indices.end(),
                           [](const Expr &a, const Expr &b) { return hi::graph_equal(a, b); })) {
                return;
            }
        }
        result.push_back(std::move(read));
    };
    for (const ResolvedRead &read : node.reads) {
        if (read.producer < 0 || !nodes_[read.producer].is_virtual) {
            add({read.producer, read.input, read.tuple_index, read.indices});
            continue;
        }
        const StageNode &view = nodes_[read.producer];
        std::map<std::string, Expr> values;
        for (std::size_t i = 0; i < view.axes.size(); ++i) {
            values[view.axes[i].name] = read.indices[i];
        }
        for (const EffectiveRead &inner : effective_reads(read.producer)) {
            EffectiveRead composed = inner;
            for (Expr &e : composed.indices) {
                e = bind_variables(e, values);
            }
            add(std::move(composed));
        }
    }
    return effective_[index].emplace(std::move(result));
}

void StageGraph::set_virtual(int index, bool is_virtual) {
    nodes_[index].is_virtual = is_virtual;
    std::vector<int> pending = nodes_[index].readers;
    while (!pending.empty()) {
        const int reader = pending.back();
        pending.pop_back();
        const bool was_known = effective_[reader].has_value();
        effective_[reader].reset();
        if (was_known && nodes_[reader].is_virtual) {
            pending.insert(pending.end(), nodes_[reader].readers.begin(), nodes_[reader].readers.end());
        }
    }
}

std::vector<int> StageGraph::real_nodes() const {
    std::vector<int> real;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].is_live && (!nodes_[i].is_virtual || nodes_[i].is_output)) {
            real.push_back(static_cast<int>(i));
        }
    }
    return real;
}

}  // namespace tilewright
