#include "lowering/translate/translate.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/float8.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"

namespace tilewright {

namespace {

translation::Table builtin() {
    translation::Table table;
    translation::add_pointwise(table);
    translation::add_constants(table);
    translation::add_views(table);
    translation::add_concatenations(table);
    translation::add_reductions(table);
    translation::add_scans(table);
    translation::add_contractions(table);
    translation::add_convolutions(table);
    translation::add_pools(table);
    translation::add_gathers(table);
    translation::add_scatters(table);
    translation::add_sort(table);
    return table;
}

translation::Table &table() {
    static translation::Table translations = builtin();
    return translations;
}

bool is_getitem(const Node &node) { return node.opcode == Opcode::call_function && node.target == "getitem"; }

}  // namespace

void register_translation(const std::string &target, Translation translation) {
    register_core_operator(target);
    table()[target] = std::move(translation);
    register_core_operator(target);
}

/// Walks a program's graph once, in order.
class Translator {
public:
    explicit Translator(const Program &program) : program(program) {}

    Translated run() {
        refuse_unknown();
        context.translated_.algorithm.symbols = program.symbols;
        for (const InputSpec &spec : program.inputs) {
            if (!spec.qualified_name.empty()) {
                context.qualified_names_.emplace(spec.placeholder, spec.qualified_name);
            }
        }
        for (const auto &node : program.graph.nodes()) {
            context.node_names_.insert(node->name);
            if (is_getitem(*node)) {
                context.read_elements_.emplace(node->input("tuple"), TranslationContext::integer(*node, "index"));
            }
            if (node->opcode == Opcode::placeholder) {
                add_input(*node);
            }
        }
        for (const auto &node : program.graph.nodes()) {
            if (node->opcode == Opcode::call_function && !is_getitem(*node)) {
                translate_node(*node);
            }
        }
        add_outputs();
        return std::move(context.translated_);
    }

private:
    void refuse_unknown() const {
        std::set<std::string> unknown;
        for (const auto &node : program.graph.nodes()) {
            bool call = node->opcode == Opcode::call_function;
            bool known = node->opcode == Opcode::placeholder || node->opcode == Opcode::output ||
                         (call && (is_getitem(*node) || table().contains(node->target)));
            if (!known) {
                unknown.insert(call ? node->target : fmt::format("{} {}", name(node->opcode), node->target));
            }
        }
        if (!unknown.empty()) {
            user_error(
                "{}: no translation of {}; register one with register_translation(), or a decomposition with register_decomposition()",
                program.name, fmt::join(unknown, ", "));
        }
    }

    /// Halide's variables have 32 bits.
    static void refuse_long_axes(const Node &node, const TensorMeta &meta) {
        for (int dim = 0; dim < meta.rank(); dim++) {
            auto size = meta.sizes[static_cast<std::size_t>(dim)].constant();
            if (size && *size > INT32_MAX) {
                user_error(
                    "node {}: dimension {} of its shape {} is longer than 2147483647, the longest that an axis may be; split it into two "
                    "dimensions",
                    node.name, dim, to_string(meta.sizes));
            }
        }
    }

    static void refuse_long_axes(const Node &node) {
        if (const auto *single = std::get_if<TensorMeta>(&node.meta)) {
            refuse_long_axes(node, *single);
        } else if (const auto *several = std::get_if<std::vector<std::optional<TensorMeta>>>(&node.meta)) {
            for (const auto &meta : *several) {
                if (meta) {
                    refuse_long_axes(node, *meta);
                }
            }
        }
    }

    /// Floats of 8 bits are bytes here: they are converted and moved.
    static void refuse_float8(const Node &node) {
        static const std::set<std::string> moves = {"prims.convert_element_type",
                                                    "prims.where",
                                                    "prims.as_strided",
                                                    "prims.broadcast_in_dim",
                                                    "prims.cat",
                                                    "prims.flip",
                                                    "prims.permute",
                                                    "prims.reshape",
                                                    "prims.slice",
                                                    "tw.gather",
                                                    "tw.gather_nd"};
        if (moves.count(node.target)) {
            return;
        }
        const auto refuse = [&](const TensorMeta &meta) {
            if (is_float8(meta.dtype)) {
                user_error("node {} ({}): there is no arithmetic of {}; convert it with .to(torch.float32) first", node.name, node.target,
                           name(meta.dtype));
            }
        };
        for (const Node *input : node.inputs()) {
            if (const auto *meta = std::get_if<TensorMeta>(&input->meta)) {
                refuse(*meta);
            }
        }
        if (const auto *meta = std::get_if<TensorMeta>(&node.meta)) {
            refuse(*meta);
        }
    }

    void translate_node(const Node &node) {
        refuse_long_axes(node);
        refuse_float8(node);
        try {
            table().find(node.target)->second(context, node);
        } catch (const std::out_of_range &) {
            internal_error("node does not fit its operator: {}", print(node));
        } catch (const Halide::Error &error) {
            internal_error("Halide refuses the translation of {}: {}", print(node), error.what());
        }
    }

    void add_input(const Node &node) {
        const auto *meta = std::get_if<TensorMeta>(&node.meta);
        if (!meta) {
            return;  // a number: sizes and constants hold its value already
        }
        refuse_long_axes(node, *meta);
        Halide::ImageParam param(to_halide(meta->dtype), meta->rank(), node.name);
        std::vector<Halide::Var> vars = argument_vars(meta->rank());
        context.translated_.algorithm.inputs.push_back({param, *meta, node.name});
        context.results_[&node] = {
            {*meta, read(param, {vars.begin(), vars.end()}), node.name + "_copy", false, "placeholder", node.module_path}};
    }

    void add_outputs() {
        const ArgumentList &values = program.graph.output_values();
        for (std::size_t i = 0; i < values.size(); i++) {
            if (Node *node = values[i].node(); node && std::holds_alternative<TensorMeta>(node->meta)) {
                add_output("out" + std::to_string(i), node, i < program.outputs.size() ? &program.outputs[i] : nullptr);
            }
        }
    }

    /// A stage's result that leaves as it is: its name and tuple index.
    using Place = std::pair<std::string, int>;

    void add_output(const std::string &name, const Node *node, const OutputSpec *spec) {
        int index = 0;
        TranslationContext::Result &result = context.result(node, index);
        if (!place_of(result)) {
            context.become_stage(result);
        }
        Place place = *place_of(result);
        if (!taken.insert(place).second) {  // a second output of one value is a tensor of its own
            TranslationContext::Result copy = result;
            copy.stage = place.first + "_copy";
            copy.has_node_name = false;
            context.become_stage(copy);
            place = *place_of(copy);
        }
        const TensorMeta &meta = spec && spec->meta ? *spec->meta : node->tensor();
        context.translated_.algorithm.outputs.push_back({name, place.first, place.second, meta});
    }

    /// Where the element is a stage's, read at exactly d0, d1, ….
    std::optional<Place> place_of(const TranslationContext::Result &result) const {
        const auto *call = result.element.as<Halide::Internal::Call>();
        if (!call || call->call_type != Halide::Internal::Call::Halide || static_cast<int>(call->args.size()) != result.meta.rank()) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < call->args.size(); i++) {
            const auto *variable = call->args[i].as<Halide::Internal::Variable>();
            if (!variable || variable->name != "d" + std::to_string(i)) {
                return std::nullopt;
            }
        }
        // A slice from 0 reads at the same places, but fewer of them.
        bool whole = context.translated_.algorithm.find_stage(call->name)->extents == result.meta.sizes;
        return whole ? std::optional(Place(call->name, call->value_index)) : std::nullopt;
    }

    const Program &program;
    TranslationContext context;
    std::set<Place> taken;
};

Translated translate(const Program &program) { return Translator(program).run(); }

}  // namespace tilewright
