#include "lowering/fusion/build_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/fusion/kernel_name.h"
#include "lowering/fusion/round_trip.h"
#include "lowering/fusion/tensor_reads.h"
#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class KernelBuilder {
public:
    KernelBuilder(const StageGraph &graph, const std::vector<int> &nodes, const StoredTensors &stored, bool strict)
        : graph_(graph), members_(nodes), stored_(stored), strict_(strict), tensors_(graph, nodes, stored, result_) {}

    BuiltKernel run() {
        for (int node : members_) {
            for (int element = 0; element < graph_.node(node).stage->func.outputs(); ++element) {
                if (stored_.count({node, element})) {
                    add_outputs(node, element);
                }
            }
        }
        std::set<std::string> symbols;
        collect_symbols(symbols);
        for (const std::string &symbol : symbols) {
            result_.algorithm.symbols.insert(*graph_.algorithm().symbols.find(symbol));
        }
        return std::move(result_);
    }

private:
    bool is_member(int node) const { return std::binary_search(members_.begin(), members_.end(), node); }

    void add_outputs(int node, int element) {
        const Halide::Func func = func_of(node);
        for (const StoredTensor &tensor : stored_.at({node, element})) {
            TensorOutput output;
            output.name = "out" + std::to_string(result_.outputs.size());
            output.stage = func.name();
            output.tuple_index = element;
            output.meta = tensor.meta;
            result_.algorithm.outputs.push_back(std::move(output));
            result_.outputs.push_back(tensor.name);
        }
    }

    void collect_symbols(std::set<std::string> &symbols) const {
        const auto collect = [&](const std::vector<Extent> &extents) {
            for (const Extent &extent : extents) {
                extent.collect_symbols(symbols);
            }
        };
        for (const TensorInput &input : result_.algorithm.inputs) {
            collect(input.meta.sizes);
            collect(input.meta.strides);
            input.meta.offset.collect_symbols(symbols);
        }
        for (const Stage &stage : result_.algorithm.stages) {
            collect(stage.extents);
            collect(stage.reduction_extents);
            for (const Expr &value : terms_of(stage)) {
                for (const std::string &variable : variables_of(value)) {
                    if (graph_.algorithm().symbols.count(variable)) {
                        symbols.insert(variable);
                    }
                }
            }
        }
        for (const TensorOutput &output : result_.algorithm.outputs) {
            collect(output.meta.strides);
        }
        for (auto it = symbols.begin(); it != symbols.end();) {
            it = graph_.algorithm().symbols.count(*it) ? std::next(it) : symbols.erase(it);
        }
    }

    // ---- Stages ----

    Halide::Func func_of(int node) {
        const auto found = funcs_.find(node);
        return found != funcs_.end() ? found->second : build(node);
    }

    Halide::Func build(int index) {
        const StageNode &node = graph_.node(index);
        const hi::Function function = node.stage->func.function();
        if (function.has_extern_definition()) {
            return build_extern(index, function);
        }
        StageReader reader = reader_of(graph_, index);
        const std::vector<Expr> values = rewrite(function.definition().values(), reader, Halide::Func());
        // The update's reads are followed before the name is taken, so that names count in the order of the stages.
        std::vector<Expr> update_values, update_places;
        if (function.has_update_definition()) {
            visit_producers(function, reader);
        }
        Halide::Func func = named_func(unique_name(node.stage->op));
        const std::vector<Halide::Var> arguments = argument_vars(node.stage->rank());
        if (values.size() == 1) {
            func(arguments) = values[0];
        } else {
            func(arguments) = Halide::Tuple(values);
        }
        if (function.has_update_definition()) {
            update_places = rewrite(function.update(0).args(), reader, func);
            update_values = rewrite(function.update(0).values(), reader, func);
            func.function().define_update(update_places, update_values, reader.domain.domain());
        }
        return finish(index, func);
    }

    Halide::Func build_extern(int index, const hi::Function &function) {
        const StageNode &node = graph_.node(index);
        std::vector<Halide::ExternFuncArgument> arguments;
        StageReader reader = reader_of(graph_, index);
        for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
            if (argument.is_func()) {
                arguments.emplace_back(whole_value(graph_.find_stage(hi::Function(argument.func).name())));
            } else if (argument.is_image_param()) {
                const TensorInput &input = graph_.algorithm().inputs[graph_.find_input(argument.image_param.name())];
                arguments.emplace_back(tensors_.whole(input));
            } else if (argument.is_expr()) {
                arguments.emplace_back(rewrite({argument.expr}, reader, Halide::Func())[0]);
            } else {
                arguments.push_back(argument);
            }
        }
        Halide::Func func = named_func(unique_name(node.stage->op));
        func.define_extern(function.extern_function_name(), arguments, function.output_types(), argument_vars(node.stage->rank()),
                           function.extern_definition_name_mangling(), function.extern_function_device_api());
        return finish(index, func);
    }

    /// A stage that holds a producer's value at the producer's own indices, for readers that take it whole.
    Halide::Func whole_value(int producer) {
        if (graph_.node(producer).is_virtual || is_member(producer)) {
            return func_of(producer);
        }
        const auto found = copies_.find(producer);
        if (found != copies_.end()) {
            return found->second;
        }
        Halide::Func copy = named_func(unique_name("copy"));
        const std::vector<Halide::Var> arguments = argument_vars(graph_.node(producer).stage->rank());
        ReadSource source;
        source.node = producer;
        copy(arguments) = read(tensors_.whole(tensors_.tensor_of(source)), {arguments.begin(), arguments.end()});
        copies_.emplace(producer, copy);
        Stage stage = *graph_.node(producer).stage;
        stage.func = copy;
        stage.reduction_extents.clear();
        result_.algorithm.stages.push_back(std::move(stage));
        result_.nodes.push_back(producer);
        return copy;
    }

    Halide::Func finish(int index, const Halide::Func &func) {
        const StageNode &node = graph_.node(index);
        Stage stage = *node.stage;
        stage.func = func;
        result_.algorithm.stages.push_back(std::move(stage));
        result_.nodes.push_back(index);
        funcs_.emplace(index, func);
        return func;
    }

    std::string unique_name(const std::string &op) {
        const std::string base = short_operator_name(op);
        const int count = name_counts_[base]++;
        return count == 0 ? base : fmt::format("{}_{}", base, count);
    }

    // ---- Expressions ----

    class ReadRewriter : public hi::IRGraphMutator {
    public:
        ReadRewriter(KernelBuilder &builder, StageReader &reader, const Halide::Func &self)
            : builder_(builder), reader_(reader), self_(self) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Variable *variable) override {
            const auto found = reader_.renamed.find(variable->name);
            return found == reader_.renamed.end() ? Expr(variable) : found->second;
        }
        Expr visit(const hi::Call *call) override {
            if (is_read(call)) {
                std::vector<Expr> indices;
                for (const Expr &index : call->args) {
                    indices.push_back(mutate(index));
                }
                return builder_.rewrite_read(call, std::move(indices), reader_, self_);
            }
            if (const Expr wide = builder_.without_round_trip(call, reader_); wide.defined()) {
                return mutate(wide);
            }
            if (math::primitive_name(call) == "checked_index") {
                std::vector<Expr> arguments{mutate(call->args[0]), mutate(call->args[1]), call->args[2],
                                            builder_.kernel_site(call->args[3])};
                return hi::Call::make(call->type, call->name, arguments, call->call_type);
            }
            return hi::IRGraphMutator::visit(call);
        }

    private:
        KernelBuilder &builder_;
        StageReader &reader_;
        const Halide::Func &self_;
    };

    std::vector<Expr> rewrite(const std::vector<Expr> &expressions, StageReader &reader, const Halide::Func &self) {
        ReadRewriter rewriter(*this, reader, self);
        std::vector<Expr> result;
        for (const Expr &e : inline_lets(expressions)) {
            // Simplified indices name reduction variables; Halide wants them tied to their domain.
            result.push_back(bind_variables(rewriter.mutate(e), reader.domain_variables));
        }
        return result;
    }

    /// Builds what an update reads; its own reads of itself are skipped.
    void visit_producers(const hi::Function &function, StageReader &reader) {
        for (const auto *list : {&function.update(0).args(), &function.update(0).values()}) {
            rewrite(*list, reader, graph_.node(reader.node).stage->func);
        }
    }

    Expr rewrite_read(const hi::Call *call, std::vector<Expr> indices, const StageReader &reader, const Halide::Func &self) {
        if (call->call_type == hi::Call::Halide && call->name == graph_.node(reader.node).name()) {
            return hi::Call::make(self.function(), indices, call->value_index);
        }
        const ReadSource source = follow(graph_, call, std::move(indices), reader);
        const bool keeps_map =
            !reads_at_variables(source.indices, reader.axes) && !source.maps.empty() && graph_.node(reader.node).has_update();
        if (source.node >= 0 && (graph_.node(source.node).is_virtual || is_member(source.node))) {
            return keeps_map ? read_map(source, reader)
                             : hi::Call::make(func_of(source.node).function(), source.indices, source.tuple_index);
        }
        const StoredTensor tensor = tensors_.tensor_of(source);
        if (const Expr viewed = tensors_.view(tensor, source, reader); viewed.defined()) {
            return viewed;
        }
        return keeps_map ? read_map(source, reader) : read(tensors_.whole(tensor), source.indices);
    }

    /// The reader's own read of the first map, which becomes a stage: an update's term keeps reading at plain variables.
    Expr read_map(const ReadSource &source, const StageReader &reader) {
        const ReadSource::Map &map = source.maps.front();
        return hi::Call::make(func_of(map.node).function(), reader.simplified(map.indices), 0);
    }

    /// The value before it was made narrow for this conversion alone; undefined where that matters.
    Expr without_round_trip(const hi::Call *call, const StageReader &reader) {
        const RoundTrip trip = strict_ ? RoundTrip() : find_round_trip(graph_, members_, call, reader.node);
        if (!trip.wide.defined() || stored_.count({trip.narrow, 0})) {
            return Expr();
        }
        result_.dropped.push_back(trip.narrow);
        return trip.wide;
    }

    /// Sites of checked indices are numbered from 0 in each kernel, so that equal layers share one.
    Expr kernel_site(const Expr &site) {
        const auto number = hi::as_const_int(site);
        internal_assert(number.has_value(), "a checked index has no constant site");
        auto &sites = result_.index_sites;
        const auto known = std::find(sites.begin(), sites.end(), static_cast<int>(*number));
        if (known == sites.end()) {
            sites.push_back(static_cast<int>(*number));
            return static_cast<int>(sites.size()) - 1;
        }
        return static_cast<int>(known - sites.begin());
    }

    const StageGraph &graph_;
    const std::vector<int> &members_;
    const StoredTensors &stored_;
    const bool strict_;
    std::unordered_map<int, Halide::Func> funcs_, copies_;
    std::map<std::string, int> name_counts_;
    BuiltKernel result_;
    TensorReads tensors_;
};

}  // namespace

BuiltKernel build_kernel(const StageGraph &graph, const std::vector<int> &nodes, const StoredTensors &stored, bool strict) {
    return KernelBuilder(graph, nodes, stored, strict).run();
}

}  // namespace tilewright
