#include "lowering/fusion/build_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool compares(const StageNode &node) {
    struct Finder : hi::IRGraphVisitor {
        bool found = false;
        using hi::IRGraphVisitor::visit;
        void visit(const hi::Call *op) override {
            static const std::set<std::string_view> comparisons{"eq", "ne", "lt", "le", "gt", "ge"};
            found |= comparisons.count(math::primitive_name(op)) != 0;
            hi::IRGraphVisitor::visit(op);
        }
    } finder;
    for (const Expr &value : terms_of(*node.stage)) {
        value.accept(&finder);
    }
    const auto fold = node.form == Form::reduction ? match_fold(node.stage->func) : std::nullopt;
    return finder.found || node.form == Form::sort ||
           (fold && (fold->combiner == Combiner::arg_maximum || fold->combiner == Combiner::arg_minimum));
}

/// A read followed through index maps to where the value is computed or stored.
struct Source {
    int node = -1;   ///< or -1
    int input = -1;  ///< or -1
    int tuple_index = 0;
    std::vector<Expr> indices;
    /// The index maps between, from the reader's side, each with the indices at which it is read.
    struct Map {
        int node = -1;
        std::vector<Expr> indices;
    };
    std::vector<Map> maps;
};

class KernelBuilder {
public:
    KernelBuilder(const StageGraph &graph, const std::vector<int> &nodes, const StoredTensors &stored, bool strict)
        : graph_(graph), members_(nodes), stored_(stored), strict_(strict) {}

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
        Reader reader = reader_of(index);
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
        Reader reader = reader_of(index);
        for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
            if (argument.is_func()) {
                arguments.emplace_back(whole_value(graph_.find_stage(hi::Function(argument.func).name())));
            } else if (argument.is_image_param()) {
                const TensorInput &input = graph_.algorithm().inputs[graph_.find_input(argument.image_param.name())];
                arguments.emplace_back(kernel_input(input.name(), input_meta(input)));
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
        const StoredTensor &tensor = stored_tensor(producer, 0);
        copy(arguments) = read(kernel_input(tensor.name, tensor.meta), {arguments.begin(), arguments.end()});
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

    /// The stage whose definition is being rewritten, in its new variables d0… and r0….
    struct Reader {
        int node = -1;
        std::vector<IndexAxis> axes;
        std::map<std::string, Expr> renamed;
        Halide::RDom domain;
        std::map<std::string, Expr> domain_variables;  ///< r0… as variables of the domain
        SamplePoints samples{{}, {}};
        bool is_guarded = false;  ///< reads stand under conditions on indices: they may point outside
    };

    Reader reader_of(int index) const {
        const StageNode &node = graph_.node(index);
        Reader reader;
        reader.node = index;
        const std::vector<Halide::Var> arguments = argument_vars(node.stage->rank());
        for (std::size_t i = 0; i < node.axes.size(); ++i) {
            reader.renamed[node.axes[i].name] = arguments[i];
            reader.axes.push_back({arguments[i].name(), node.axes[i].extent});
        }
        if (!node.variables.empty()) {
            std::vector<Expr> extents;
            for (const IndexAxis &variable : node.variables) {
                extents.push_back(to_halide(variable.extent));
            }
            reader.domain = reduction_domain(extents);
            for (std::size_t i = 0; i < node.variables.size(); ++i) {
                const Halide::RVar variable = reader.domain[static_cast<int>(i)];
                reader.renamed[node.variables[i].name] = variable;
                reader.domain_variables[variable.name()] = variable;
                reader.axes.push_back({variable.name(), node.variables[i].extent});
            }
        }
        reader.samples = SamplePoints(reader.axes, graph_.algorithm().symbols);
        reader.is_guarded = node.form != Form::contraction && selects_by_index(terms_of(*node.stage));
        return reader;
    }

    static bool selects_by_index(const std::vector<Expr> &values) {
        struct Finder : hi::IRGraphVisitor {
            bool found = false;
            using hi::IRGraphVisitor::visit;
            void visit(const hi::Select *op) override {
                found |= !contains_read(op->condition);
                hi::IRGraphVisitor::visit(op);
            }
        } finder;
        for (const Expr &value : values) {
            value.accept(&finder);
        }
        return finder.found;
    }

    class ReadRewriter : public hi::IRGraphMutator {
    public:
        ReadRewriter(KernelBuilder &builder, Reader &reader, const Halide::Func &self) : builder_(builder), reader_(reader), self_(self) {}
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
            if (const Expr whole = builder_.without_round_trip(call, reader_); whole.defined()) {
                return mutate(whole);
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
        Reader &reader_;
        const Halide::Func &self_;
    };

    std::vector<Expr> rewrite(const std::vector<Expr> &expressions, Reader &reader, const Halide::Func &self) {
        ReadRewriter rewriter(*this, reader, self);
        std::vector<Expr> result;
        for (const Expr &e : inline_lets(expressions)) {
            // Simplified indices name reduction variables; Halide wants them tied to their domain.
            result.push_back(bind_variables(rewriter.mutate(e), reader.domain_variables));
        }
        return result;
    }

    /// Builds what an update reads; its own reads of itself are skipped.
    void visit_producers(const hi::Function &function, Reader &reader) {
        for (const auto *list : {&function.update(0).args(), &function.update(0).values()}) {
            rewrite(*list, reader, graph_.node(reader.node).stage->func);
        }
    }

    Expr rewrite_read(const hi::Call *call, std::vector<Expr> indices, Reader &reader, const Halide::Func &self) {
        if (call->call_type == hi::Call::Halide && call->name == graph_.node(reader.node).name()) {
            return hi::Call::make(self.function(), indices, call->value_index);
        }
        const Source source = follow(call, std::move(indices), reader);
        const bool is_plain = reads_at_variables(source.indices, reader.axes);
        const bool is_computed_here = source.node >= 0 && (graph_.node(source.node).is_virtual || is_member(source.node));
        const bool keeps_map = !is_plain && !source.maps.empty() && graph_.node(reader.node).has_update();
        if (is_computed_here) {
            return keeps_map ? read_map(source, reader)
                             : hi::Call::make(func_of(source.node).function(), source.indices, source.tuple_index);
        }
        const StoredTensor tensor = source.node >= 0 ? stored_tensor(source.node, source.tuple_index) : input_tensor(source.input);
        const bool must_be_plain = graph_.node(reader.node).form == Form::contraction;
        const bool is_window = graph_.node(reader.node).form == Form::window;  // its sums of variables say which places overlap
        // Neighbours of one tensor stay neighbours; a part that is read alone is a view.
        const bool stays = reads_shifted(source.indices, reader.axes) && has_neighbours(source, reader);
        const bool folds = !is_plain && (must_be_plain || !stays);
        if (folds && !is_window && !reader.is_guarded) {
            if (auto view = fold_view(tensor.meta, source.indices, reader.axes, reader.samples)) {
                return read(kernel_input(tensor.name, view->meta), view->indices);
            }
        }
        if (folds && graph_.node(reader.node).is_map) {
            if (const auto view = split_view(tensor.meta, source.indices, reader.axes)) {
                return read(kernel_input(tensor.name, view->meta), view->indices);
            }
        }
        if (folds) {
            for (const Source::Map &map : source.maps) {
                if (const Expr viewed = read_folded_map(map, tensor, reader, must_be_plain); viewed.defined()) {
                    return viewed;
                }
            }
        }
        if (keeps_map) {
            return read_map(source, reader);
        }
        return read(kernel_input(tensor.name, tensor.meta), source.indices);
    }

    /// Whether the stage reads the tensor elsewhere too, or another of the kernel reads what overlaps with this.
    bool has_neighbours(const Source &source, const Reader &reader) const {
        int own = 0;
        for (int index : members_) {
            const StageNode &node = graph_.node(index);
            std::vector<IndexAxis> axes = node.axes;
            axes.insert(axes.end(), node.variables.begin(), node.variables.end());
            for (const EffectiveRead &read : graph_.effective_reads(index)) {
                if (read.producer != source.node || read.input != source.input || read.tuple_index != source.tuple_index) {
                    continue;
                }
                own += index == reader.node;
                if (own > 1 || (index != reader.node && overlap(source.indices, reader.axes, read.indices, axes))) {
                    return true;
                }
            }
        }
        return false;
    }

    std::vector<Expr> simplified(std::vector<Expr> indices, const Reader &reader) const {
        for (Expr &index : indices) {
            index = simplest_index(index, reader.axes, reader.samples);
        }
        return indices;
    }

    /// The reader's own read of the first map, which becomes a stage: an update's term keeps reading at plain variables.
    Expr read_map(const Source &source, Reader &reader) {
        const Source::Map &map = source.maps.front();
        return hi::Call::make(func_of(map.node).function(), simplified(map.indices, reader), 0);
    }

    /// The map as a strided view of the tensor, read at the indices at which the map is read: they stay inside whatever conditions stand
    /// around them, and may be read from tensors themselves.
    Expr read_folded_map(const Source::Map &map, const StoredTensor &tensor, Reader &reader, bool must_be_plain) {
        Reader space = reader_of(map.node);
        const Expr value = terms_of(*graph_.node(map.node).stage)[0];
        const auto *first = value.as<hi::Call>();
        std::vector<Expr> indices;
        for (const Expr &index : first->args) {
            indices.push_back(bind_variables(index, space.renamed));
        }
        const Source through = follow(first, indices, space);
        const auto view = fold_view(tensor.meta, through.indices, space.axes, space.samples);
        if (!view) {
            return Expr();
        }
        const std::vector<Expr> own = simplified(map.indices, reader);
        std::vector<Expr> at;
        for (const Expr &variable : view->indices) {
            for (std::size_t i = 0; i < space.axes.size(); ++i) {
                if (space.axes[i].name == variable.as<hi::Variable>()->name) {
                    at.push_back(own[i]);
                }
            }
        }
        const bool is_plain = std::all_of(at.begin(), at.end(), [](const Expr &index) { return index.as<hi::Variable>() || hi::is_const(index); });
        return is_plain || !must_be_plain ? read(kernel_input(tensor.name, view->meta), at) : Expr();
    }

    Source follow(const hi::Call *call, std::vector<Expr> indices, Reader &reader) const {
        Source source;
        source.indices = std::move(indices);
        std::string name = call->name;
        source.tuple_index = call->value_index;
        for (;;) {
            source.input = graph_.find_input(name);
            source.node = source.input < 0 ? graph_.find_stage(name) : -1;
            if (source.node < 0) {
                break;
            }
            const StageNode &node = graph_.node(source.node);
            if (!node.is_map || !node.is_virtual) {
                break;
            }
            source.maps.push_back({source.node, source.indices});
            std::map<std::string, Expr> values;
            for (std::size_t i = 0; i < node.axes.size(); ++i) {
                values[node.axes[i].name] = source.indices[i];
            }
            const Expr value = terms_of(*node.stage)[0];
            const auto *next = value.as<hi::Call>();
            source.indices.clear();
            for (const Expr &index : next->args) {
                source.indices.push_back(bind_variables(index, values));
            }
            source.tuple_index = next->value_index;
            name = next->name;
        }
        source.indices = simplified(std::move(source.indices), reader);
        return source;
    }

    /// convert(wide, narrow value) where the narrow value was made by convert() from the wide type and nobody else sees it: the wide
    /// value. The conversion is followed only inside this kernel. A product keeps its operands narrow: so matrix units multiply them.
    Expr without_round_trip(const hi::Call *call, Reader &reader) {
        if (strict_ || math::primitive_name(call) != "convert" || graph_.node(reader.node).form == Form::contraction) {
            return Expr();
        }
        const auto *inner = call->args[0].as<hi::Call>();
        const int index = inner && is_read(inner) ? graph_.find_stage(inner->name) : -1;
        if (index < 0) {
            return Expr();
        }
        const StageNode &narrow = graph_.node(index);
        if (!is_member(index) || narrow.is_output || narrow.form != Form::pointwise || narrow.readers.size() != 1 ||
            narrow.stage->func.outputs() != 1) {
            return Expr();
        }
        const StageNode &widened = graph_.node(reader.node);
        const bool seen_once =
            widened.readers.size() == 1 && !widened.is_output && !compares(widened) && !compares(graph_.node(widened.readers[0]));
        const Expr value = terms_of(*narrow.stage)[0];
        const auto *made = value.as<hi::Call>();
        if (!seen_once || !made || math::primitive_name(made) != "convert" || made->args[0].type() != call->type ||
            !call->type.is_float() || stored_.count({index, 0})) {
            return Expr();
        }
        std::map<std::string, Expr> values;
        for (std::size_t i = 0; i < narrow.axes.size(); ++i) {
            values[narrow.axes[i].name] = inner->args[i];
        }
        result_.dropped.push_back(index);
        return bind_variables(made->args[0], values);
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

    // ---- Tensors ----

    const StoredTensor &stored_tensor(int node, int element) const {
        const auto found = stored_.find({node, element});
        internal_assert(found != stored_.end(), "stage {} is read by another kernel and is not stored", graph_.node(node).name());
        return found->second.front();
    }

    static TensorMeta input_meta(const TensorInput &input) {
        TensorMeta meta = input.meta;
        meta.offset = 0;  // counted from the tensor's element 0, wherever that lies in its storage
        return meta;
    }
    StoredTensor input_tensor(int input) const {
        const TensorInput &tensor = graph_.algorithm().inputs[input];
        return {tensor.name(), input_meta(tensor)};
    }

    /// The offset leaves the kernel for the call where it keeps the alignment that every tensor has.
    Halide::ImageParam kernel_input(const std::string &tensor, TensorMeta meta) {
        Extent call_offset = 0;
        constexpr std::int64_t alignment = 256;  // bytes
        if (const auto offset = meta.offset.constant(); offset && *offset * size_in_bytes(meta.dtype) % alignment == 0) {
            std::swap(call_offset, meta.offset);
        }
        return kernel_input(tensor, meta, call_offset);
    }

    Halide::ImageParam kernel_input(const std::string &tensor, const TensorMeta &meta, const Extent &call_offset) {
        const std::string key = tensor + " " + meta.to_string() + " " + call_offset.to_string();
        const auto found = inputs_.find(key);
        if (found != inputs_.end()) {
            return result_.algorithm.inputs[found->second].param;
        }
        inputs_.emplace(key, result_.algorithm.inputs.size());
        const std::string name = "in" + std::to_string(result_.algorithm.inputs.size());
        result_.algorithm.inputs.push_back({Halide::ImageParam(to_halide(meta.dtype), meta.rank(), name), meta, name});
        result_.inputs.push_back(tensor);
        result_.input_offsets.push_back(call_offset);
        return result_.algorithm.inputs.back().param;
    }

    const StageGraph &graph_;
    const std::vector<int> &members_;
    const StoredTensors &stored_;
    const bool strict_;
    std::unordered_map<int, Halide::Func> funcs_, copies_;
    std::map<std::string, int> name_counts_;
    std::map<std::string, std::size_t> inputs_;
    BuiltKernel result_;
};

}  // namespace

BuiltKernel build_kernel(const StageGraph &graph, const std::vector<int> &nodes, const StoredTensors &stored, bool strict) {
    return KernelBuilder(graph, nodes, stored, strict).run();
}

std::string short_operator_name(const std::string &op) {
    std::string name = op;
    const std::size_t first = name.find('.');
    if (first != std::string::npos) {
        const std::size_t second = name.find('.', first + 1);
        name = name.substr(first + 1, second == std::string::npos ? std::string::npos : second - first - 1);
    }
    if (name == "convert_element_type") {
        name = "convert";
    } else if (name == "broadcast_in_dim") {
        name = "broadcast";
    }
    for (char &c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    name.erase(0, std::min(name.find_first_not_of('_'), name.size()));
    while (!name.empty() && name.back() == '_') {
        name.pop_back();
    }
    return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ? "stage" + name : name;
}

}  // namespace tilewright
