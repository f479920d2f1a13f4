// Reads the printed graph. Every mistake is reported with its line and column.
#include <charconv>
#include <cstdlib>

#include "dsl/error.h"
#include "dsl/graph/graph.h"
#include "dsl/graph/graph_text.h"

namespace tilewright {
namespace {

using Metas = std::vector<std::optional<TensorMeta>>;

class Parser {
public:
    Parser(std::string_view text, const std::string &file) : text_(text), file_(file) {}

    Graph parse() {
        expect_word("graph");
        expect('{');
        bool ended = false;
        while (!accept('}')) {
            if (ended) {
                fail("an instruction after the output; the output comes last");
            }
            if (at_ == text_.size()) {
                fail("the graph ends early; expected an instruction or '}'");
            }
            ended = instruction();
        }
        skip();
        if (at_ != text_.size()) {
            fail("unexpected text after the graph");
        }
        if (!ended) {
            fail("the graph has no output; end it with an instruction such as %output = output(values=[%x])");
        }
        return std::move(graph_);
    }

private:
    [[noreturn]] void fail_at(std::size_t place, const std::string &why) const {
        std::size_t line = 1, column = 1;
        for (std::size_t i = 0; i < place && i < text_.size(); ++i) {
            column = text_[i] == '\n' ? 1 : column + 1;
            line += text_[i] == '\n';
        }
        user_error("{}:{}:{}: {}", file_, line, column, why);
    }
    [[noreturn]] void fail(const std::string &why) const { fail_at(at_, why); }

    void skip() {
        while (at_ < text_.size()) {
            if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
                ++at_;
            } else if (text_[at_] == '#') {
                while (at_ < text_.size() && text_[at_] != '\n') {
                    ++at_;
                }
            } else {
                return;
            }
        }
    }
    bool accept(char c) {
        skip();
        if (at_ >= text_.size() || text_[at_] != c) {
            return false;
        }
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) {
            fail(fmt::format("expected '{}'", c));
        }
    }
    std::string_view peek_word() {
        skip();
        std::size_t end = at_;
        while (end < text_.size() && is_graph_word(text_.substr(at_, end - at_ + 1))) {
            ++end;
        }
        return text_.substr(at_, end - at_);
    }
    bool accept_word(std::string_view word) {
        if (peek_word() != word) {
            return false;
        }
        at_ += word.size();
        return true;
    }
    void expect_word(std::string_view word) {
        if (!accept_word(word)) {
            fail(fmt::format("expected '{}'", word));
        }
    }
    std::string string() {
        expect('"');
        const std::size_t start = at_ - 1;
        std::string result;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
            char c = text_[at_++];
            if (c == '\\' && at_ < text_.size()) {
                c = text_[at_++];
                if (c == 'x') {
                    unsigned value = 0;
                    const std::string_view digits = text_.substr(at_, 2);
                    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
                    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
                        fail("expected two hexadecimal digits after \\x");
                    }
                    at_ += 2;
                    c = static_cast<char>(value);
                } else if (c != '"' && c != '\\') {
                    fail("unknown escape; a string knows \\\", \\\\ and \\x41");
                }
            }
            result += c;
        }
        if (at_ >= text_.size() || text_[at_] != '"') {
            fail_at(start, "a string without its closing quote");
        }
        ++at_;
        return result;
    }
    std::string word_or_string(std::string_view what) {
        skip();
        if (at_ < text_.size() && text_[at_] == '"') {
            return string();
        }
        const std::string_view word = peek_word();
        if (word.empty()) {
            fail(fmt::format("expected {}", what));
        }
        at_ += word.size();
        return std::string(word);
    }

    /// An expression reaches to the next comma or closing bracket outside its own parentheses.
    Extent extent() {
        skip();
        std::size_t end = at_;
        int depth = 0;
        for (; end < text_.size() && text_[end] != '\n'; ++end) {
            const char c = text_[end];
            if (depth == 0 && (c == ',' || c == ']' || c == ')')) {
                break;
            }
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        }
        try {
            const Extent result = Extent::parse(text_.substr(at_, end - at_));
            at_ = end;
            return result;
        } catch (const UserError &error) {
            fail(error.what());
        }
    }
    std::vector<Extent> extents() {
        expect('[');
        std::vector<Extent> result;
        if (accept(']')) {
            return result;
        }
        do {
            result.push_back(extent());
        } while (accept(','));
        expect(']');
        return result;
    }

    TensorMeta tensor() {
        const std::size_t start = at_;
        const std::string_view word = peek_word();
        const auto dtype = parse_dtype(word);
        if (!dtype) {
            fail(fmt::format("unknown element type '{}'; expected one such as float32", word));
        }
        at_ += word.size();
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
    /// An offset ends where the instruction goes on: at " = ", or at a comma or bracket in a list of results.
    Extent offset() {
        const std::size_t end = std::min(text_.find(" = ", at_), text_.find('\n', at_));
        const std::string_view whole = text_;
        text_ = text_.substr(0, end);
        const Extent result = extent();
        text_ = whole;
        return result;
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
        const std::size_t start = at_;
        expect('%');
        const std::string_view name = peek_word();
        const auto found = names_.find(std::string(name));
        if (found == names_.end()) {
            fail_at(start, fmt::format("%{} is not defined before this line", name));
        }
        at_ += name.size();
        return found->second;
    }
    template<std::size_t N> std::size_t choice(std::string_view prefix, std::string_view word, const std::array<std::string_view, N> &names) {
        const std::string_view rest = word.substr(prefix.size());
        for (std::size_t i = 0; i < N; ++i) {
            if (names[i] == rest) {
                return i;
            }
        }
        fail(fmt::format("unknown word '{}'", word));
    }
    Argument number_or_extent() {
        // A floating-point number has a point, an exponent, or is inf or nan.
        std::size_t end = at_;
        while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || std::string_view("+-.").find(text_[end]) !=
                                                                                                  std::string_view::npos)) {
            ++end;
        }
        const std::string token(text_.substr(at_, end - at_));
        const std::string magnitude = token.substr(!token.empty() && token[0] == '-' ? 1 : 0);
        const bool digits = !magnitude.empty() && std::isdigit(static_cast<unsigned char>(magnitude[0]));
        if (magnitude == "inf" || magnitude == "nan" || (digits && magnitude.find_first_of(".e") != std::string::npos)) {
            char *stop = nullptr;
            const double value = std::strtod(token.c_str(), &stop);
            if (*stop != '\0') {
                fail(fmt::format("'{}' is no number", token));
            }
            at_ = end;
            return value;
        }
        return extent();
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
        skip();
        if (at_ >= text_.size()) {
            fail("expected an argument");
        }
        if (text_[at_] == '%') {
            return node();
        }
        if (text_[at_] == '"') {
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
        } else {
            return number_or_extent();
        }
        at_ += word.size();
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
        skip();
        const std::size_t start = at_;
        expect('%');
        const std::string_view name = peek_word();
        if (name.empty() || name.find('.') != std::string_view::npos) {
            fail("expected a name of letters, digits and _ after %");
        }
        if (names_.contains(std::string(name))) {
            fail_at(start, fmt::format("%{} is defined twice; rename one", name));
        }
        at_ += name.size();
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
            fail(fmt::format("unknown instruction '{}'; expected placeholder, get_attr, call_function, call_method, call_module or output", opcode));
        }
        at_ += opcode.size();
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
        skip();
        const char next = at_ < text_.size() ? text_[at_] : ' ';
        if (node.opcode == Opcode::output) {
            node.target = "output";
        } else if (node.opcode == Opcode::placeholder && (next == '%' || next == '}' || next == '@' || next == ' ')) {
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

    std::string_view text_;
    std::string file_;
    std::size_t at_ = 0;
    int depth_ = 0;
    Graph graph_;
    std::unordered_map<std::string, Node *> names_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string &file) { return Parser(text, file).parse(); }

}  // namespace tilewright
