#include <cmath>

#include "dsl/error.h"
#include "dsl/graph/graph.h"
#include "dsl/graph/graph_text.h"

namespace tilewright {
namespace {

std::string number(double value) {
    if (std::isnan(value)) {
        return "nan";
    }
    if (std::isinf(value)) {
        return value < 0 ? "-inf" : "inf";
    }
    // The shortest digits that read back to the same value; a point keeps it apart from an integer.
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) {
        text += ".0";
    }
    return text;
}

std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            result += fmt::format("\\x{:02x}", byte);
        } else {
            result += c;
        }
    }
    return result + "\"";
}

std::string word(const std::string &text) { return is_graph_word(text) ? text : quoted(text); }

std::string list(const ArgumentList &values) {
    std::string text;
    for (const Argument &value : values) {
        text += (text.empty() ? "" : ", ") + print(value);
    }
    return text;
}

struct ArgumentPrinter {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(const Extent &value) const { return value.to_string(); }
    std::string operator()(double value) const { return number(value); }
    std::string operator()(const std::string &value) const { return quoted(value); }
    std::string operator()(DType value) const { return "torch." + std::string(name(value)); }
    std::string operator()(const Device &value) const {
        return value.index ? fmt::format("device({}, {})", quoted(value.type), *value.index)
                           : fmt::format("device({})", quoted(value.type));
    }
    std::string operator()(MemoryFormat value) const {
        return "memory_format." + std::string(memory_format_names[static_cast<std::size_t>(value)]);
    }
    std::string operator()(Layout value) const { return "layout." + std::string(layout_names[static_cast<std::size_t>(value)]); }
    std::string operator()(const Node *value) const { return value == nullptr ? "%<null>" : "%" + value->name; }
    std::string operator()(const ArgumentList &value) const { return "[" + list(value) + "]"; }
};

struct MetaPrinter {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(const TensorMeta &meta) const { return " : " + meta.to_string(); }
    std::string operator()(const Extent &value) const { return " : int(" + value.to_string() + ")"; }
    std::string operator()(const std::vector<std::optional<TensorMeta>> &metas) const {
        std::string text;
        for (const auto &meta : metas) {
            text += (text.empty() ? "" : ", ") + (meta ? meta->to_string() : "none");
        }
        return " : (" + text + ")";
    }
};

}  // namespace

std::string_view name(Opcode opcode) { return opcode_names[static_cast<std::size_t>(opcode)]; }

std::string print(const Argument &argument) { return std::visit(ArgumentPrinter{}, argument.value); }

std::string print(const Node &node) {
    std::string text = "%" + node.name + std::visit(MetaPrinter{}, node.meta) + " = " + std::string(name(node.opcode));
    const bool bare = node.opcode == Opcode::output || (node.opcode == Opcode::placeholder && node.target == node.name);
    if (!bare) {
        text += " " + word(node.target);
    }
    if (node.opcode != Opcode::placeholder && node.opcode != Opcode::get_attr) {
        std::string arguments;
        for (const NamedArgument &argument : node.arguments) {
            arguments += (arguments.empty() ? "" : ", ") + word(argument.name) + "=" + print(argument.value);
        }
        text += "(" + arguments + ")";
    }
    return node.module_path.empty() ? text : text + " @ " + word(node.module_path);
}

std::string print(const Graph &graph) {
    std::string text = "graph {\n";
    for (const auto &node : graph.nodes()) {
        text += "  " + print(*node) + "\n";
    }
    return text + "}\n";
}

}  // namespace tilewright
