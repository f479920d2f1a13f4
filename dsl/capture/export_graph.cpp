#include "dsl/capture/export_graph.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <optional>

#include "dsl/capture/json.h"

namespace tilewright {
namespace {

namespace json = boost::json;

constexpr int most_nested_regions = 16;

std::string_view without_prefix(std::string_view target) {
    constexpr std::string_view prefix = "torch.ops.";
    return target.starts_with(prefix) ? target.substr(prefix.size()) : target;
}

/// "…;L__self__encoder,encoder,torch.nn.Linear" → "encoder"
std::string module_path(const json::object &node) {
    const json::value *metadata = optional_field(node, "metadata");
    const json::value *stack =
        metadata == nullptr || !metadata->is_object() ? nullptr : optional_field(metadata->get_object(), "nn_module_stack");
    if (stack == nullptr || !stack->is_string()) {
        return "";
    }
    std::string_view last = as_text(*stack, "nn_module_stack");
    last = last.substr(last.rfind(';') + 1);
    const std::size_t first = last.find(',');
    const std::size_t second = first == std::string_view::npos ? first : last.find(',', first + 1);
    if (second == std::string_view::npos) {
        return "";
    }
    const std::string_view path = last.substr(first + 1, second - first - 1);
    return path.starts_with("_empty_nn_module_stack") ? "" : std::string(path);
}

/// Symbols for sizes that only running the program would tell: u0, u1, …
bool is_data_dependent(const Extent &extent) {
    std::set<std::string> symbols;
    extent.collect_symbols(symbols);
    for (const std::string &symbol : symbols) {
        if (symbol.size() > 1 && symbol[0] == 'u' && std::isdigit(static_cast<unsigned char>(symbol[1]))) {
            return true;
        }
    }
    return false;
}

bool is_data_dependent(const TensorMeta &meta) {
    for (const auto *list : {&meta.sizes, &meta.strides}) {
        for (const Extent &extent : *list) {
            if (!extent.is_constant() && is_data_dependent(extent)) {
                return true;
            }
        }
    }
    return is_data_dependent(meta.offset);
}

template<typename Read> Argument list_of(const json::value &value, std::string_view what, Read &&read) {
    ArgumentList list;
    for (const json::value &element : as_array(value, what)) {
        list.push_back(read(element));
    }
    return list;
}

std::string_view tensor_name(const json::value &value) { return as_text(field(as_object(value, "a tensor"), "name"), "a tensor's name"); }

/// How many arguments of a region that only switches settings stand before its graph; nothing for other targets.
std::optional<std::size_t> settings_of_region(std::string_view target) {
    if (target == "higher_order.wrap_with_set_grad_enabled") {
        return 1;
    }
    return target == "higher_order.wrap_with_autocast" ? std::optional<std::size_t>(4) : std::nullopt;
}

/// The tensors among an instruction's results, lists taken apart; "" for a result that is none.
std::vector<std::string_view> result_names(const json::array &outputs) {
    std::vector<std::string_view> names;
    for (const json::value &output : outputs) {
        const auto [kind, content] = as_variant(output, "an output");
        if (kind == "as_tensors") {
            const json::array &elements = as_array(*content, "outputs");
            std::transform(elements.begin(), elements.end(), std::back_inserter(names),
                           [](const json::value &e) { return tensor_name(e); });
        } else {
            names.push_back(kind == "as_tensor" ? tensor_name(*content) : std::string_view());
        }
    }
    return names;
}

}  // namespace

GraphReader::GraphReader(Graph &graph, SizeReader &sizes, const json::object &serialised)
    : graph_(graph),
      sizes_(sizes),
      serialised_(serialised),
      tensor_values_(as_object(field(serialised, "tensor_values"), "tensor_values")) {
    if (const auto *ints = optional_field(serialised, "sym_int_values")) {
        for (const auto &entry : as_object(*ints, "sym_int_values")) {
            const std::string name(entry.key());
            define(name, in_context([&] { return name; }, [&] { return sizes_.sym_int(entry.value()); }));
        }
    }
    // Conditions and floating-point numbers are kept where they are constants; others only serve assertions or are refused where used.
    if (const auto *bools = optional_field(serialised, "sym_bool_values")) {
        for (const auto &entry : as_object(*bools, "sym_bool_values")) {
            if (const auto [kind, content] = as_variant(entry.value(), "a condition"); kind == "as_bool") {
                define({entry.key().data(), entry.key().size()}, as_boolean(*content, "a condition"));
            }
        }
    }
    if (const auto *floats = optional_field(serialised, "sym_float_values")) {
        for (const auto &entry : as_object(*floats, "sym_float_values")) {
            if (const auto [kind, content] = as_variant(entry.value(), "a number"); kind == "as_float") {
                define({entry.key().data(), entry.key().size()}, as_number(*content, "a number"));
            }
        }
    }
}

void GraphReader::define(std::string_view name, Argument value) {
    if (!values_.emplace(name, std::move(value)).second) {
        user_error("the value {} is defined twice", name);
    }
}

void GraphReader::bind(const std::string &name, const Argument &value) { values_[name] = value; }

Argument GraphReader::value(std::string_view name) const {
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) {
        user_error("it reads {}, which no earlier instruction defines", name);
    }
    return found->second;
}

TensorMeta GraphReader::meta_of(std::string_view name) {
    const json::value *meta = tensor_values_.if_contains({name.data(), name.size()});
    if (meta == nullptr) {
        user_error("there is no metadata for {}", name);
    }
    return in_context([&] { return std::string(name); }, [&] { return sizes_.tensor(*meta); });
}

Node *GraphReader::add_placeholder(const std::string &name) {
    Node *node = nullptr;
    if (const auto found = values_.find(name); found != values_.end() && found->second.get_if<Extent>() != nullptr) {
        node = graph_.placeholder(name, *found->second.get_if<Extent>());
    } else {
        node = graph_.placeholder(name, meta_of(name));
        define(name, node);
    }
    note_data_dependence(*node);
    return node;
}

Argument GraphReader::argument(const json::value &serialised) {
    const auto [kind, content] = as_variant(serialised, "an argument");
    const json::value &v = *content;
    const auto tensor = [&](const json::value &e) -> Argument { return value(tensor_name(e)); };
    const auto integer = [](const json::value &e) -> Argument { return Extent(as_integer(e, "an integer")); };
    const auto text = [](const json::value &e) -> Argument { return std::string(as_text(e, "a string")); };
    const auto number = [](const json::value &e) -> Argument { return as_number(e, "a number"); };
    const auto boolean = [](const json::value &e) -> Argument { return as_boolean(e, "a boolean"); };
    const auto symbolic = [&](const json::value &e) -> Argument {
        const auto [inner_kind, inner] = as_variant(e, "a symbolic argument");
        if (inner_kind == "as_int") {
            return integer(*inner);
        }
        if (inner_kind == "as_bool") {
            return boolean(*inner);
        }
        if (inner_kind == "as_float") {
            return number(*inner);
        }
        const std::string name(as_text(*inner, "a symbolic argument"));
        if (!values_.contains(name)) {
            refuse_numbers_from_data();
            user_error("it reads the symbolic value {}, which is no integer expression; compute it outside the model", name);
        }
        Argument found = value(name);
        if (const Extent *size = found.get_if<Extent>(); size && is_data_dependent(*size)) {
            refuse_numbers_from_data();
        }
        return found;
    };
    const auto optional_tensor = [&](const json::value &e) -> Argument {
        const auto [inner_kind, inner] = as_variant(e, "an optional tensor");
        return inner_kind == "as_none" ? Argument() : tensor(*inner);
    };
    if (kind == "as_none") {
        return {};
    }
    if (kind == "as_tensor") {
        return tensor(v);
    }
    if (kind == "as_tensors") {
        return list_of(v, "tensors", tensor);
    }
    if (kind == "as_int") {
        return integer(v);
    }
    if (kind == "as_ints") {
        return list_of(v, "integers", integer);
    }
    if (kind == "as_float") {
        return number(v);
    }
    if (kind == "as_floats") {
        return list_of(v, "numbers", number);
    }
    if (kind == "as_string") {
        return text(v);
    }
    if (kind == "as_strings") {
        return list_of(v, "strings", text);
    }
    if (kind == "as_bool") {
        return boolean(v);
    }
    if (kind == "as_bools") {
        return list_of(v, "booleans", boolean);
    }
    if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
        return symbolic(v);
    }
    if (kind == "as_sym_ints" || kind == "as_sym_bools" || kind == "as_sym_floats") {
        return list_of(v, "symbolic arguments", symbolic);
    }
    if (kind == "as_scalar_type") {
        return dtype_of(as_integer(v, "an element type"));
    }
    if (kind == "as_memory_format") {
        return memory_format_of(as_integer(v, "a memory format"));
    }
    if (kind == "as_layout") {
        return as_integer(v, "a layout") == strided_layout ? Layout::strided : Layout::other;
    }
    if (kind == "as_device") {
        return device_of(v);
    }
    if (kind == "as_optional_tensor") {
        return optional_tensor(v);
    }
    if (kind == "as_optional_tensors") {
        return list_of(v, "optional tensors", optional_tensor);
    }
    if (kind == "as_int_lists") {
        return list_of(v, "lists", [&](const json::value &e) { return list_of(e, "integers", integer); });
    }
    if (kind == "as_nested_tensors") {
        return list_of(v, "lists", [&](const json::value &e) { return list_of(e, "tensors", tensor); });
    }
    // The operator that takes a graph is refused by its name with all others that are not supported.
    if (kind == "as_graph") {
        return std::string(tensor_name(v));
    }
    user_error("arguments of the kind {} are not supported", kind);
}

void GraphReader::read_nodes() {
    for (const json::value &element : as_array(field(serialised_, "nodes"), "nodes")) {
        const json::object &node = as_object(element, "a node");
        const json::value *given = optional_field(node, "name");
        const std::string name(given == nullptr ? "" : as_text(*given, "a node's name"));
        in_context([&] { return "node " + (name.empty() ? std::string("without a name") : name); }, [&] { read_node(node, name); });
    }
}

/// sym_size, arithmetic on sizes and assertions about them: their results stand as expressions where they are read.
bool GraphReader::computes_sizes_only(const json::object &node) const {
    const std::string_view target = without_prefix(as_text(field(node, "target"), "target"));
    if (target.starts_with("aten._assert_scalar.") || target.starts_with("aten.sym_constrain_range") ||
        target.starts_with("aten._assert_async.") || target == "aten._functional_assert_scalar.default") {
        return true;
    }
    const json::array &outputs = as_array(field(node, "outputs"), "outputs");
    if (outputs.empty()) {
        return false;
    }
    for (const json::value &output : outputs) {
        const std::string_view kind = as_variant(output, "an output").first;
        if (kind != "as_sym_int" && kind != "as_sym_bool" && kind != "as_sym_float") {
            return false;
        }
    }
    return true;
}

void GraphReader::read_node(const json::object &node, const std::string &name) {
    const std::string_view target = without_prefix(as_text(field(node, "target"), "target"));
    if (computes_sizes_only(node)) {
        // item() makes a number out of data, which matters once anything but an assertion reads it.
        for (const json::value &output : as_array(field(node, "outputs"), "outputs")) {
            const auto [kind, content] = as_variant(output, "an output");
            const auto [inner_kind, inner] = as_variant(*content, "an output");
            const auto found = inner_kind == "as_name" ? values_.find(std::string(as_text(*inner, "an output"))) : values_.end();
            const Extent *size = found == values_.end() ? nullptr : found->second.get_if<Extent>();
            if (!target.starts_with("_operator.") && !target.starts_with("aten.sym_") &&
                (kind != "as_sym_int" ? !target.starts_with("torch.sym") && !target.starts_with("math.")
                                      : size != nullptr && is_data_dependent(*size))) {
                asserted_.push_back(fmt::format("node {} ({})", name, target));
            }
        }
        return;
    }
    if (inline_region(node, target)) {
        return;
    }
    std::vector<NamedArgument> arguments;
    int position = 0;
    for (const json::value &input : as_array(field(node, "inputs"), "inputs")) {
        const json::object &object = as_object(input, "an input");
        std::string argument_name(as_text(field(object, "name"), "an argument's name"));
        if (argument_name.empty()) {
            argument_name = fmt::format("arg{}", position);
        }
        Argument value = in_context([&] { return fmt::format("{}, argument {}", target, argument_name); },
                                    [&] { return argument(field(object, "arg")); });
        for (const NamedArgument &other : arguments) {
            if (other.name == argument_name) {
                user_error("{} is given its argument {} twice", target, argument_name);
            }
        }
        arguments.push_back({std::move(argument_name), std::move(value)});
        ++position;
    }
    Node *added = graph_.call(std::string(target), std::move(arguments), {}, name);
    added->module_path = module_path(node);
    add_results(added, node);
    note_data_dependence(*added);
}

void GraphReader::add_results(Node *node, const json::object &serialised) {
    const json::array &outputs = as_array(field(serialised, "outputs"), "outputs");
    if (outputs.empty()) {
        return;
    }
    const auto [first_kind, first] = as_variant(outputs[0], "an output");
    if (outputs.size() == 1 && first_kind == "as_tensor") {
        node->meta = meta_of(tensor_name(*first));
        define(tensor_name(*first), node);
        return;
    }
    std::vector<std::string_view> names;  // empty where the operator gives None
    if (outputs.size() == 1 && first_kind == "as_tensors") {
        for (const json::value &element : as_array(*first, "outputs")) {
            names.push_back(tensor_name(element));
        }
    } else {
        for (const json::value &output : outputs) {
            const auto [kind, content] = as_variant(output, "an output");
            if (kind != "as_tensor" && kind != "as_none") {
                user_error("{} gives a result of the kind {}, which is not supported", node->target, kind);
            }
            names.push_back(kind == "as_none" ? std::string_view() : tensor_name(*content));
        }
    }
    std::vector<std::optional<TensorMeta>> metas;
    for (const std::string_view name : names) {
        metas.push_back(name.empty() ? std::nullopt : std::optional(meta_of(name)));
    }
    node->meta = std::move(metas);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!names[i].empty()) {
            Node *item = graph_.getitem(node, static_cast<int>(i));
            graph_.rename(item, names[i]);
            item->module_path = node->module_path;
            define(names[i], item);
        }
    }
}

void GraphReader::note_data_dependence(const Node &node) {
    bool dependent = false;
    if (const auto *tensor = std::get_if<TensorMeta>(&node.meta)) {
        dependent = is_data_dependent(*tensor);
    } else if (const auto *results = std::get_if<std::vector<std::optional<TensorMeta>>>(&node.meta)) {
        for (const auto &result : *results) {
            dependent = dependent || (result && is_data_dependent(*result));
        }
    }
    // Named is what makes such a size, not all that inherits it.
    for (const Node *input : node.inputs()) {
        const auto *tensor = std::get_if<TensorMeta>(&input->meta);
        dependent = dependent && !(tensor != nullptr && is_data_dependent(*tensor));
    }
    if (dependent) {
        refuse_numbers_from_data();
        data_dependent_.push_back(fmt::format("node {} ({})", node.name, node.target));
    }
}

void GraphReader::refuse_numbers_from_data() {
    data_dependent_.insert(data_dependent_.end(), asserted_.begin(), asserted_.end());
    asserted_.clear();
}

/// A region that only switches gradients or autocasting on or off computes what its instructions compute; the types that autocasting chose
/// stand in their metadata.
bool GraphReader::inline_region(const json::object &node, std::string_view target) {
    const std::optional<std::size_t> settings = settings_of_region(target);
    if (!settings) {
        return false;
    }
    const json::array &inputs = as_array(field(node, "inputs"), "inputs");
    if (*settings >= inputs.size()) {
        user_error("{} has {} arguments", target, inputs.size());
    }
    const auto [kind, region] = as_variant(field(as_object(inputs[*settings], "an input"), "arg"), "an argument");
    if (kind != "as_graph") {
        user_error("{} has no graph", target);
    }
    if (depth_ >= most_nested_regions) {
        user_error("regions are nested more than {} deep", most_nested_regions);
    }
    const json::object &inner_graph = as_object(field(as_object(*region, "a region"), "graph"), "a region's graph");
    GraphReader inner(graph_, sizes_, inner_graph);
    inner.depth_ = depth_ + 1;
    const std::size_t first = *settings + 1;
    const json::array &parameters = as_array(field(inner_graph, "inputs"), "a region's inputs");
    if (parameters.size() + first != inputs.size()) {
        user_error("{} passes {} arguments to a region that takes {}", target, inputs.size() - first, parameters.size());
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto [parameter_kind, parameter] = as_variant(parameters[i], "a region's input");
        const Argument passed = argument(field(as_object(inputs[first + i], "an input"), "arg"));
        if (parameter_kind == "as_tensor") {
            inner.bind(std::string(tensor_name(*parameter)), passed);
        }
    }
    inner.read_nodes();
    data_dependent_.insert(data_dependent_.end(), inner.data_dependent_.begin(), inner.data_dependent_.end());
    asserted_.insert(asserted_.end(), inner.asserted_.begin(), inner.asserted_.end());

    const std::vector<std::string_view> names = result_names(as_array(field(node, "outputs"), "outputs"));
    const json::array &results = as_array(field(inner_graph, "outputs"), "a region's outputs");
    if (results.size() != names.size()) {
        user_error("{} gives {} results from a region that has {}", target, names.size(), results.size());
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!names[i].empty()) {
            define(names[i], inner.argument(results[i]));
        }
    }
    return true;
}

}  // namespace tilewright
