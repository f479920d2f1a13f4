#include "lowering/decompose/functionalize_writes.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/error.h"
#include "lowering/decompose/promotion.h"

namespace tilewright {
namespace {

struct Target {
    std::string_view name, overload;  ///< "add_", "Tensor"
};

/// Empty names outside aten.
Target split_target(std::string_view target) {
    constexpr std::string_view prefix = "aten.";
    if (!target.starts_with(prefix)) {
        return {};
    }
    target.remove_prefix(prefix.size());
    const std::size_t dot = target.find('.');
    return {target.substr(0, dot), dot == std::string_view::npos ? std::string_view() : target.substr(dot + 1)};
}

const std::map<std::string_view, std::string_view> operators_of_assignment = {
    {"__iand__", "__and__"}, {"__ior__", "__or__"}, {"__ixor__", "__xor__"}, {"__ilshift__", "__lshift__"}, {"__irshift__", "__rshift__"}};

// Twins whose overloads have other names than the in-place operators'.
const std::map<std::string_view, std::string_view> renamed_twins = {
    {"aten.pow_.Scalar", "aten.pow.Tensor_Scalar"},
    {"aten.pow_.Tensor", "aten.pow.Tensor_Tensor"},
    {"aten.floor_divide_.Tensor", "aten.floor_divide.default"},
    {"aten.float_power_.Scalar", "aten.float_power.Tensor_Scalar"},
    {"aten.float_power_.Tensor", "aten.float_power.Tensor_Tensor"},
};

/// What is `self` in place is `input` in the twin.
const std::set<std::string_view> calling_self_input = {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"};

const std::set<std::string_view> views_in_place = {"t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_"};
const std::set<std::string_view> resizing = {"resize_", "resize_as_", "set_", "as_strided_", "rename_", "resize_as_sparse_"};
/// These keep their names, under which they are refused together with all operators that are not supported.
const std::set<std::string_view> random = {"normal_",    "uniform_", "bernoulli_",  "random_", "exponential_",
                                           "geometric_", "cauchy_",  "log_normal_", "rrelu_"};
const std::set<std::string_view> promoting = {"add",
                                              "sub",
                                              "mul",
                                              "div",
                                              "pow",
                                              "fmod",
                                              "remainder",
                                              "floor_divide",
                                              "atan2",
                                              "addcmul",
                                              "addcdiv",
                                              "hypot",
                                              "bitwise_and",
                                              "bitwise_or",
                                              "bitwise_xor",
                                              "subtract",
                                              "divide",
                                              "multiply",
                                              "__and__",
                                              "__or__",
                                              "__xor__",
                                              "true_divide",
                                              "copysign",
                                              "xlogy",
                                              "clamp",
                                              "clamp_min",
                                              "clamp_max",
                                              "clip",
                                              "float_power",
                                              "nextafter",
                                              "gcd",
                                              "lcm",
                                              "heaviside",
                                              "arctan2",
                                              "bitwise_left_shift",
                                              "bitwise_right_shift",
                                              "__lshift__",
                                              "__rshift__"};
const std::set<std::string_view> giving_booleans = {"eq",          "ne",         "lt",          "le",           "gt",    "ge",
                                                    "logical_and", "logical_or", "logical_xor", "logical_not",  "equal", "not_equal",
                                                    "less",        "less_equal", "greater",     "greater_equal"};

std::string_view twin_name(std::string_view name) {
    if (const auto found = operators_of_assignment.find(name); found != operators_of_assignment.end()) {
        return found->second;
    }
    return name.substr(0, name.size() - 1);
}

/// The type in which PyTorch computes the operator, before the result is converted to that of the tensor it is written to.
DType promoted_type(const Node &node) {
    std::vector<Operand> operands;
    for (const NamedArgument &argument : node.arguments) {
        const Argument &value = argument.value;
        if (Node *input = value.node(); input != nullptr && std::holds_alternative<TensorMeta>(input->meta)) {
            operands.emplace_back(input);
        } else if (argument.name == "alpha") {
            continue;  // a factor of the other operand; it has no say
        } else if (const auto *real = value.get_if<double>()) {
            operands.emplace_back(*real);
        } else if (const auto *boolean = value.get_if<bool>()) {
            operands.emplace_back(*boolean);
        } else if (const auto *integer = value.get_if<Extent>()) {
            operands.emplace_back(*integer);
        }
    }
    return result_type(operands);
}

ArgumentList sizes_of(const TensorMeta &meta) { return {meta.sizes.begin(), meta.sizes.end()}; }

Node *cast(Graph &graph, Node *value, DType dtype) {
    TensorMeta meta = value->tensor();
    if (meta.dtype == dtype) {
        return value;
    }
    meta.dtype = dtype;
    return graph.call("aten._to_copy.default", {{"self", value}, {"dtype", dtype}}, meta);
}

/// A tensor's value as another of the given metadata: converted, broadcast and laid out alike.
Node *copied(Graph &graph, Node *value, const TensorMeta &self) {
    value = cast(graph, value, self.dtype);
    if (value->tensor().sizes != self.sizes) {
        TensorMeta expanded = TensorMeta::contiguous(self.dtype, self.sizes);
        value = graph.call("aten.expand.default", {{"self", value}, {"size", sizes_of(self)}}, expanded);
    }
    return value->tensor() == self ? value : graph.call("aten.clone.default", {{"self", value}}, self);
}

Node *filled(Graph &graph, const Argument &value, const TensorMeta &self) {
    if (Node *tensor = value.node()) {
        return copied(graph, tensor, self);
    }
    return graph.call("aten.full.default", {{"size", sizes_of(self)}, {"fill_value", value}, {"dtype", self.dtype}}, self);
}

Argument zero(DType dtype) {
    if (dtype == DType::boolean) {
        return false;
    }
    return is_floating_point(dtype) ? Argument(0.0) : Argument(Extent(0));
}

}  // namespace

WriteKind write_kind(const Node &node) {
    if (node.opcode != Opcode::call_function) {
        return WriteKind::none;
    }
    const auto [name, overload] = split_target(node.target);
    if (name.empty()) {
        return WriteKind::none;
    }
    if (overload == "out" || overload.ends_with("_out") || (overload != "default" && node.find("out") != nullptr) || resizing.contains(name)) {
        return WriteKind::refused;
    }
    if (operators_of_assignment.contains(name)) {
        return WriteKind::value;
    }
    if (!name.ends_with('_') || name.ends_with("__") || name == "requires_grad_" || name == "detach_") {
        return WriteKind::none;
    }
    if (name.starts_with("_foreach") || node.arguments.empty() || node.arguments[0].value.node() == nullptr) {
        return WriteKind::refused;
    }
    if (name == "dropout_" || name == "feature_dropout_") {
        const Argument *train = node.find("train");
        const bool *training = train == nullptr ? nullptr : train->get_if<bool>();
        return training != nullptr && !*training ? WriteKind::none : WriteKind::value;
    }
    return views_in_place.contains(name) ? WriteKind::metadata : WriteKind::value;
}

Node *written_value(Graph &graph, const Node &node, const TensorMeta &self) {
    const auto [name, overload] = split_target(node.target);
    if (name == "copy_") {
        return copied(graph, node.input("src"), self);
    }
    if (name == "zero_") {
        return filled(graph, zero(self.dtype), self);
    }
    if (name == "fill_") {
        const Argument *value = node.find("value");
        if (value == nullptr) {
            user_error("node {}: {} needs a value", node.name, node.target);
        }
        return filled(graph, *value, self);
    }
    const std::string_view twin = twin_name(name);
    std::string target = fmt::format("aten.{}.{}", twin, overload);
    if (const auto renamed = renamed_twins.find(node.target); renamed != renamed_twins.end()) {
        target = renamed->second;
    } else if (random.contains(name)) {
        target = node.target;
    }
    TensorMeta meta = self;
    if (promoting.contains(twin)) {
        meta.dtype = promoted_type(node);
    } else if (giving_booleans.contains(twin)) {
        meta.dtype = DType::boolean;
    }
    std::vector<NamedArgument> arguments = node.arguments;
    if (calling_self_input.contains(twin)) {
        arguments[0].name = "input";
    }
    Node *value = graph.call(target, std::move(arguments), meta);
    value->module_path = node.module_path;
    return cast(graph, value, self.dtype);
}

}  // namespace tilewright
