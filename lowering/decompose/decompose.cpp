#include "lowering/decompose/decompose.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "dsl/error.h"
#include "lowering/decompose/builder.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Operators without a tensor result, which only check something that the compiled program checks by itself, or that was true at export.
bool is_dropped(const Node &node) {
    static const std::set<std::string, std::less<>> dropped = {"aten._assert_tensor_metadata.default",
                                                               "aten._assert_async.default",
                                                               "aten._assert_async.msg",
                                                               "aten._assert_scalar.default",
                                                               "aten.sym_constrain_range.default",
                                                               "aten.sym_constrain_range_for_size.default",
                                                               "aten._functional_assert_async.msg",
                                                               "aten._functional_assert_scalar.default",
                                                               "aten._functional_sym_constrain_range.default",
                                                               "aten._functional_sym_constrain_range_for_size.default",
                                                               "aten._print.default"};
    return dropped.contains(node.target);
}

bool yields_integer(const Node &node) { return std::holds_alternative<Extent>(node.meta); }

struct Missing {
    int count = 0;
    std::string example;
};

/// Rewrites one graph into another, instruction by instruction, so that the work is proportional to their sizes.
class Decomposer {
public:
    Decomposer(const Graph &from, Graph &to, const RuleTable &rules) : from_(from), graph_(to), builder_(to), rules_(rules) {}

    void run() {
        find_read_nodes();
        for (const auto &node : from_.nodes()) {
            visit(*node);
        }
        report();
    }

private:
    /// Instructions whose value reaches the output; others are not worth refusing.
    void find_read_nodes() {
        for (auto node = from_.nodes().rbegin(); node != from_.nodes().rend(); ++node) {
            if ((*node)->opcode == Opcode::output || read_.contains(node->get())) {
                for (const Node *input : (*node)->inputs()) {
                    read_.insert(input);
                }
            }
        }
    }

    void visit(const Node &node) {
        Graph &graph = builder_.graph();
        switch (node.opcode) {
            case Opcode::placeholder:
                results_[&node] = {graph.placeholder(node.name, node.meta)};
                break;
            case Opcode::get_attr: {
                Node *attribute = graph.get_attr(node.target, node.meta);
                attribute->module_path = node.module_path;
                results_[&node] = {attribute};
                break;
            }
            case Opcode::output: {
                ArgumentList values;
                for (const NamedArgument &argument : node.arguments) {
                    const Argument value = translated(argument.value);
                    if (const auto *list = value.get_if<ArgumentList>()) {
                        values.insert(values.end(), list->begin(), list->end());
                    } else {
                        values.push_back(value);
                    }
                }
                graph.output(std::move(values));
                break;
            }
            default:
                if (!yields_integer(node) && !is_dropped(node) && read_.contains(&node)) {
                    call(node);
                }
        }
    }

    /// Counts an operator that nothing is known of, or that is refused by name, for the report.
    bool is_missing(const Node &node) {
        if (node.target == "getitem" || is_core(node.target) || (rules_.find(node.target) && !rules_.reason(node.target))) {
            return false;
        }
        Missing &missing = rules_.reason(node.target) ? refused_[node.target] : unknown_[node.target];
        if (missing.count++ == 0) {
            missing.example = node.name;
        }
        return true;
    }

    bool reads_what_is_missing(const Node &node) const {
        const std::vector<Node *> inputs = node.inputs();
        return std::any_of(inputs.begin(), inputs.end(),
                           [&](const Node *input) { return !yields_integer(*input) && !results_.contains(input); });
    }

    void call(const Node &node) {
        if (is_missing(node) || reads_what_is_missing(node)) {
            return;
        }
        if (node.target == "getitem") {
            results_[&node] = {item(node)};
            if (mistaken_.contains(node.inputs().front())) {
                mistaken_.insert(&node);
            }
            return;
        }
        Node copy;
        copy.name = node.name;
        copy.target = node.target;
        copy.meta = node.meta;
        copy.module_path = node.module_path;
        for (const NamedArgument &argument : node.arguments) {
            copy.arguments.push_back({argument.name, translated(argument.value)});
        }
        for (const Node *input : node.inputs()) {
            if (mistaken_.contains(input)) {
                copy.meta = {};
            }
        }
        builder_.set_origin(node);
        if (is_core(node.target)) {
            Node *same = builder_.graph().call(node.target, copy.arguments, node.meta, node.name);
            same->module_path = node.module_path;
            results_[&node] = {same};
            return;
        }
        const Rule *rule = rules_.find(node.target);
        const Node *last = last_node();
        Results results = {nullptr};
        try {
            results = (*rule)(builder_, Arguments(copy, &node));
            if (const std::optional<DType> type = autocast_type(copy, results)) {
                cast_operands(copy, *type);
                results = (*rule)(builder_, Arguments(copy, &node));
            }
        } catch (const UserError &error) {
            const std::string text = error.what();
            if (text.find(fmt::format("'{}'", node.name)) != std::string::npos) {
                throw;
            }
            user_error("node '{}' ({}): {}", node.name, node.target, text);
        }
        check(node, copy, results);
        // The value that stands for the instruction carries its name.
        if (results.front() && last_node() == results.front() && last_node() != last) {
            builder_.graph().rename(results.front(), node.name);
        }
        results_[&node] = std::move(results);
    }

    /// The type in which PyTorch computed the operator, where that is another than the operands': torch.autocast leaves no casts in the
    /// graph.
    static std::optional<DType> autocast_type(const Node &copy, const Results &results) {
        const TensorMeta *recorded = Arguments(copy).result();
        if (!recorded || !results.front() || recorded->dtype == dtype_of(results.front()) || !is_floating_point(recorded->dtype) ||
            !is_floating_point(dtype_of(results.front()))) {
            return std::nullopt;
        }
        return recorded->dtype;
    }

    void cast_operands(Node &copy, DType type) {
        const auto cast = [&](Argument &argument) {
            Node *operand = argument.node();
            const auto *meta = operand ? std::get_if<TensorMeta>(&operand->meta) : nullptr;
            if (meta && is_floating_point(meta->dtype)) {
                argument = builder_.convert(operand, type, true);
            }
        };
        for (NamedArgument &argument : copy.arguments) {
            cast(argument.value);
            if (auto *list = std::get_if<ArgumentList>(&argument.value.value)) {
                for (Argument &element : *list) {
                    cast(element);
                }
            }
        }
    }

    const Node *last_node() const {
        const auto &nodes = graph_.nodes();
        return nodes.empty() ? nullptr : nodes.back().get();
    }

    Node *item(const Node &node) {
        const std::vector<Node *> &results = results_.at(node.inputs().front());
        const Argument *index = nullptr;
        for (const NamedArgument &argument : node.arguments) {
            if (argument.value.get_if<Extent>()) {
                index = &argument.value;
            }
        }
        internal_assert(index != nullptr, "getitem '{}' has no constant index", node.name);
        const std::int64_t i = index->get_if<Extent>()->value();
        if (results.size() == 1 && !std::holds_alternative<TensorMeta>(results.front()->meta)) {
            return builder_.graph().getitem(results.front(), static_cast<int>(i));  // of a registered translation
        }
        const std::int64_t count = static_cast<std::int64_t>(results.size());
        const std::int64_t place = i < 0 ? i + count : i;
        if (place < 0 || place >= count || !results[place]) {
            user_error("node '{}' reads result {} of '{}', which is not computed", node.name, i, node.inputs().front()->name);
        }
        return results[place];
    }

    Argument translated(const Argument &argument) const {
        if (const Node *node = argument.node()) {
            if (yields_integer(*node)) {
                return std::get<Extent>(node->meta);
            }
            auto found = results_.find(node);
            return found == results_.end() ? Argument() : Argument(found->second.front());
        }
        if (const auto *list = argument.get_if<ArgumentList>()) {
            ArgumentList copy;
            for (const Argument &element : *list) {
                copy.push_back(translated(element));
            }
            return Argument(std::move(copy));
        }
        return argument;
    }

    /// What a rule gives has the type and shape that the program recorded. PyTorch 2.11 records wrong shapes for the states of recurrent
    /// layers; what is computed from those is not compared.
    void check(const Node &node, const Node &copy, const Results &results) {
        const Arguments arguments(node);
        const bool unreliable = node.target.ends_with(".input") || std::holds_alternative<std::monostate>(copy.meta);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const TensorMeta *expected = arguments.result(i);
            if (!expected || !results[i]) {
                continue;
            }
            bool same = dtype_of(results[i]) == expected->dtype && rank_of(results[i]) == expected->rank();
            for (int d = 0; same && d < expected->rank(); ++d) {
                same = may_equal(sizes_of(results[i])[d], expected->sizes[d]);
            }
            if (!same && unreliable) {
                mistaken_.insert(&node);
                continue;
            }
            if (!same) {
                user_error(
                    "node '{}' ({}): its arguments give {} but the program says {}; export the model again, and if this stays it is a "
                    "bug in Tilewright",
                    node.name, node.target, results[i]->tensor().to_string(), expected->to_string());
            }
        }
    }

    void report() const {
        if (unknown_.empty() && refused_.empty()) {
            return;
        }
        std::string text = "the program uses operators that cannot be compiled:";
        const char *separator = " ";
        const auto times = [](int count) { return count == 1 ? "1 time" : fmt::format("{} times", count); };
        for (const auto &[target, missing] : unknown_) {
            text += fmt::format("{}{} ({}, first '{}')", separator, target, times(missing.count), missing.example);
            separator = ", ";
        }
        for (const auto &[target, missing] : refused_) {
            text +=
                fmt::format("{}{} ({}, first '{}': {})", separator, target, times(missing.count), missing.example, *rules_.reason(target));
            separator = ", ";
        }
        if (!unknown_.empty()) {
            text += "; register_decomposition() or register_translation() can add the ones that are not known";
        }
        throw UserError(text);
    }

    const Graph &from_;
    Graph &graph_;
    Builder builder_;
    const RuleTable &rules_;
    std::unordered_map<const Node *, std::vector<Node *>> results_;
    std::set<const Node *> read_;
    std::set<const Node *> mistaken_;  ///< the program records wrong shapes for their results
    std::map<std::string, Missing> unknown_, refused_;
};

void keep_output_layouts(Program &program) {
    const ArgumentList &values = program.graph.output_values();
    for (std::size_t i = 0; i < program.outputs.size() && i < values.size(); ++i) {
        const Node *node = values[i].node();
        const auto *meta = node ? std::get_if<TensorMeta>(&node->meta) : nullptr;
        if (meta && !program.outputs[i].meta) {
            program.outputs[i].meta = *meta;
        }
    }
}

/// An output whose recorded shape is wrong is laid out contiguously.
void correct_output_layouts(Program &program, const Graph &core) {
    const ArgumentList &values = core.output_values();
    for (std::size_t i = 0; i < program.outputs.size() && i < values.size(); ++i) {
        const Node *node = values[i].node();
        const auto *meta = node ? std::get_if<TensorMeta>(&node->meta) : nullptr;
        std::optional<TensorMeta> &recorded = program.outputs[i].meta;
        if (meta && recorded && (recorded->dtype != meta->dtype || recorded->rank() != meta->rank())) {
            recorded = *meta;
        }
    }
}

}  // namespace

Results Builder::apply(const std::string &target, std::vector<NamedArgument> arguments, Meta meta) {
    const Rule *rule = rule_table().find(target);
    if (!rule) {
        user_error("a decomposition uses {}, which has no decomposition itself", target);
    }
    Node node;
    node.opcode = Opcode::call_function;
    node.name = origin_name_;
    node.target = target;
    node.arguments = std::move(arguments);
    node.meta = std::move(meta);
    node.module_path = module_path_;
    return (*rule)(*this, Arguments(node));
}

void decompose(Program &program) {
    keep_output_layouts(program);
    Graph core;
    Decomposer(program.graph, core, rule_table()).run();
    core.eliminate_dead_code();
    correct_output_layouts(program, core);
    program.graph = std::move(core);
}

namespace {

std::set<std::string, std::less<>> &core_operators() {
    static std::set<std::string, std::less<>> core = [] {
        std::set<std::string, std::less<>> names = {"getitem",      "tw.dot",    "tw.convolution", "tw.pool_max",  "tw.pool_sum",
                                                    "tw.gather_nd", "tw.gather", "tw.scatter",     "tw.index_put", "tw.sort"};
        for (const char *prim : {"convert_element_type",
                                 "where",
                                 "full",
                                 "iota",
                                 "broadcast_in_dim",
                                 "reshape",
                                 "permute",
                                 "slice",
                                 "flip",
                                 "as_strided",
                                 "cat",
                                 "pad",
                                 "sum",
                                 "prod",
                                 "amin",
                                 "amax",
                                 "any",
                                 "all",
                                 "argmin",
                                 "argmax",
                                 "max_with_index",
                                 "min_with_index",
                                 "var_mean",
                                 "cumsum",
                                 "cumprod",
                                 "cummax",
                                 "cummin",
                                 "logcumsumexp",
                                 "logsumexp",
                                 "abs",
                                 "acos",
                                 "acosh",
                                 "asin",
                                 "asinh",
                                 "atan",
                                 "atanh",
                                 "bitwise_not",
                                 "ceil",
                                 "cos",
                                 "cosh",
                                 "digamma",
                                 "erf",
                                 "erfc",
                                 "erfinv",
                                 "exp",
                                 "exp2",
                                 "expm1",
                                 "floor",
                                 "isfinite",
                                 "isinf",
                                 "isnan",
                                 "lgamma",
                                 "log",
                                 "log10",
                                 "log1p",
                                 "log2",
                                 "logical_not",
                                 "neg",
                                 "round",
                                 "rsqrt",
                                 "sign",
                                 "signbit",
                                 "sin",
                                 "sinh",
                                 "sqrt",
                                 "tan",
                                 "tanh",
                                 "trunc",
                                 "add",
                                 "sub",
                                 "mul",
                                 "div",
                                 "div_floor",
                                 "div_trunc",
                                 "fmod",
                                 "remainder",
                                 "pow",
                                 "atan2",
                                 "copysign",
                                 "hypot",
                                 "nextafter",
                                 "minimum",
                                 "maximum",
                                 "fmin",
                                 "fmax",
                                 "bitwise_and",
                                 "bitwise_or",
                                 "bitwise_xor",
                                 "shift_left",
                                 "shift_right",
                                 "eq",
                                 "ne",
                                 "lt",
                                 "le",
                                 "gt",
                                 "ge"}) {
            names.insert(std::string("prims.") + prim);
        }
        return names;
    }();
    return core;
}

}  // namespace

void register_core_operator(const std::string &target) { core_operators().insert(target); }

bool is_core(std::string_view target) { return core_operators().contains(target); }

}  // namespace tilewright
