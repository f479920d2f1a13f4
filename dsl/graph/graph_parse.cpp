// Reads the printed graph. Every mistake is reported with its line and column.
#include "dsl/error.h"
#include "dsl/graph/graph.h"
#include "dsl/graph/graph_text.h"
#include "dsl/graph/graph_text_reader.h"

namespace tilewright {
namespace {

using Metas = std::vector<std::optional<TensorMeta>>;

class Parser : private GraphTextReader {
public:
    using GraphTextReader::GraphTextReader;

    Graph parse() {
        expect_word("graph");
        expect('{');
        bool ended = false;
        while (!accept('}')) {
            if (ended) {
                fail("an instruction after the output; the output comes last");
            }
            if (at_end()) {
                fail("the graph ends early; expected an instruction or '}'");
            }
            ended = instruction();
        }
        here();
        if (!at_end()) {
            fail("unexpected text after the graph");
        }
        if (!ended) {
            fail("the graph has no output; end it with an instruction such as %output = output(values=[%x])");
        }
        return std::move(graph_);
    }

private:
    TensorMeta tensor() {
        const std::size_t start = here();
        const std::string_view word = peek_word();
        const auto dtype = parse_dtype(word);
        if (!dtype) {
            fail(fmt::format("unknown element type '{}'; expected one such as float32", word));
        }
        take(word);
        TensorMeta meta = TensorMeta::contiguous(*dtype, extents());
        if (accept_word("strides")) {
            expect('=');
            meta.strides = extents();
            if (meta.strides.size() != meta.sizes.size()) {
                fail_at(start, fmt::format("{} strides for {} sizes", meta.strides.size(), meta.sizes.size()));
            }
        }
        if (accept_word("offset")) {
            expect('=');
            meta.offset = offset();
        }
        return meta;
    }
    Meta meta() {
        if (!accept(':')) {
            return {};
        }
        if (accept('(')) {
            Metas results;
            if (accept(')')) {
                return results;
            }
            do {
                results.push_back(accept_word("none") ? std::nullopt : std::optional(tensor()));
            } while (accept(','));
            expect(')');
            return results;
        }
        if (accept_word("int")) {
            expect('(');
            const Extent value = extent();
            expect(')');
            return value;
        }
        return tensor();
    }

    Node *node() {
        const std::size_t start = here();
        expect('%');
        const std::string_view name = peek_word();
        const auto found = names_.find(std::string(name));
        if (found == names_.end()) {
            fail_at(start, fmt::format("%{} is not defined before this line", name));
        }
        take(name);
        return found->second;
    }
    template<std::size_t N>
    std::size_t choice(std::string_view prefix, std::string_view word, const std::array<std::string_view, N> &names) {
        const std::string_view rest = word.substr(prefix.size());
        for (std::size_t i = 0; i < N; ++i) {
            if (names[i] == rest) {
                return i;
            }
        }
        fail(fmt::format("unknown word '{}'", word));
    }
    Argument argument() {
        if (++depth_ > 32) {
            fail("lists are nested more than 32 deep");
        }
        Argument result = any_argument();
        --depth_;
        return result;
    }
    Argument any_argument() {
        const char first = next();
        if (at_end()) {
            fail("expected an argument");
        }
        if (first == '%') {
            return node();
        }
        if (first == '"') {
            return string();
        }
        if (accept('[')) {
            ArgumentList list;
            if (accept(']')) {
                return list;
            }
            do {
                list.push_back(argument());
            } while (accept(','));
            expect(']');
            return list;
        }
        const std::string_view word = peek_word();
        const auto is = [&](std::string_view prefix) { return word.starts_with(prefix); };
        Argument result;
        if (word == "none") {
            result = std::monostate{};
        } else if (word == "true" || word == "false") {
            result = word == "true";
        } else if (is("torch.")) {
            const auto dtype = parse_dtype(word.substr(6));
            if (!dtype) {
                fail(fmt::format("unknown element type '{}'", word));
            }
            result = *dtype;
        } else if (is("memory_format.")) {
            result = static_cast<MemoryFormat>(choice("memory_format.", word, memory_format_names));
        } else if (is("layout.")) {
            result = static_cast<Layout>(choice("layout.", word, layout_names));
        } else if (word == "device") {
            return device();
        } else if (const std::optional<double> value = floating_point()) {
            return *value;
        } else {
            return extent();
        }
        take(word);
        return result;
    }
    Argument device() {
        expect_word("device");
        expect('(');
        Device device{string(), std::nullopt};
        if (accept(',')) {
            const auto index = extent().constant();
            if (!index || *index < 0 || *index > 1 << 16) {
                fail("a device's index is a small number");
            }
            device.index = static_cast<int>(*index);
        }
        expect(')');
        return device;
    }

    /// Returns whether it was the output.
    bool instruction() {
        const std::size_t start = here();
        expect('%');
        const std::string_view name = peek_word();
        if (name.empty() || name.find('.') != std::string_view::npos) {
            fail("expected a name of letters, digits and _ after %");
        }
        if (names_.contains(std::string(name))) {
            fail_at(start, fmt::format("%{} is defined twice; rename one", name));
        }
        take(name);
        Node node;
        node.name = name;
        node.meta = meta();
        expect('=');
        const std::string_view opcode = peek_word();
        std::size_t index = 0;
        while (index < opcode_names.size() && opcode_names[index] != opcode) {
            ++index;
        }
        if (index == opcode_names.size()) {
            fail(fmt::format("unknown instruction '{}'; expected placeholder, get_attr, call_function, call_method, call_module or output",
                             opcode));
        }
        take(opcode);
        node.opcode = static_cast<Opcode>(index);
        read_target_and_arguments(node);
        if (accept('@')) {
            node.module_path = word_or_string("a module path");
        }
        check(node, start);
        names_[node.name] = graph_.add(node);
        return node.opcode == Opcode::output;
    }
    void read_target_and_arguments(Node &node) {
        const char first = next();
        if (node.opcode == Opcode::output) {
            node.target = "output";
        } else if (node.opcode == Opcode::placeholder && (first == '%' || first == '}' || first == '@' || first == ' ')) {
            node.target = node.name;
        } else {
            node.target = word_or_string("what is called");
        }
        if (node.opcode == Opcode::placeholder || node.opcode == Opcode::get_attr) {
            return;
        }
        expect('(');
        if (accept(')')) {
            return;
        }
        do {
            const std::string name = word_or_string("an argument's name");
            expect('=');
            node.arguments.push_back({name, argument()});
        } while (accept(','));
        expect(')');
    }
    /// What verify() demands of a node, said to the person who wrote it.
    void check(const Node &node, std::size_t start) const {
        if (node.opcode == Opcode::output && (node.arguments.size() != 1 || node.arguments[0].name != "values" ||
                                              node.arguments[0].value.get_if<ArgumentList>() == nullptr)) {
            fail_at(start, "an output takes one list: output(values=[%x])");
        }
        if (node.target != "getitem" || node.opcode != Opcode::call_function) {
            return;
        }
        const Argument *tuple = node.find("tuple"), *index = node.find("index");
        const Extent *position = index == nullptr ? nullptr : index->get_if<Extent>();
        if (tuple == nullptr || tuple->node() == nullptr || position == nullptr || !position->is_constant()) {
            fail_at(start, "getitem takes a node and a number: getitem(tuple=%x, index=0)");
        }
        const Metas *results = std::get_if<Metas>(&tuple->node()->meta);
        if (results == nullptr || position->value() < 0 || position->value() >= static_cast<std::int64_t>(results->size())) {
            fail_at(start, fmt::format("%{} has no result {}", tuple->node()->name, position->value()));
        }
    }

    int depth_ = 0;
    Graph graph_;
    std::unordered_map<std::string, Node *> names_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string &file) { return Parser(text, file).parse(); }

}  // namespace tilewright
