#include "dsl/graph/graph_text_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "dsl/error.h"
#include "dsl/graph/graph_text.h"

namespace tilewright {

void GraphTextReader::fail_at(std::size_t place, const std::string &why) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < place && i < text_.size(); ++i) {
        column = text_[i] == '\n' ? 1 : column + 1;
        line += text_[i] == '\n';
    }
    user_error("{}:{}:{}: {}", file_, line, column, why);
}

void GraphTextReader::skip() {
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

std::size_t GraphTextReader::here() {
    skip();
    return at_;
}

char GraphTextReader::next() {
    skip();
    return at_ < text_.size() ? text_[at_] : ' ';
}

bool GraphTextReader::accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) {
        return false;
    }
    ++at_;
    return true;
}

void GraphTextReader::expect(char c) {
    if (!accept(c)) {
        fail(fmt::format("expected '{}'", c));
    }
}

std::string_view GraphTextReader::peek_word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && is_graph_word(text_.substr(at_, end - at_ + 1))) {
        ++end;
    }
    return text_.substr(at_, end - at_);
}

bool GraphTextReader::accept_word(std::string_view word) {
    if (peek_word() != word) {
        return false;
    }
    at_ += word.size();
    return true;
}

void GraphTextReader::expect_word(std::string_view word) {
    if (!accept_word(word)) {
        fail(fmt::format("expected '{}'", word));
    }
}

std::string GraphTextReader::string() {
    expect('"');
    const std::size_t start = at_ - 1;
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
        const char c = text_[at_++];
        result += c == '\\' && at_ < text_.size() ? escaped() : c;
    }
    if (at_ >= text_.size() || text_[at_] != '"') {
        fail_at(start, "a string without its closing quote");
    }
    ++at_;
    return result;
}

/// What stands after a backslash.
char GraphTextReader::escaped() {
    const char c = text_[at_++];
    if (c == 'x') {
        unsigned value = 0;
        const std::string_view digits = text_.substr(at_, 2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
            fail("expected two hexadecimal digits after \\x");
        }
        at_ += 2;
        return static_cast<char>(value);
    }
    if (c != '"' && c != '\\') {
        fail("unknown escape; a string knows \\\", \\\\ and \\x41");
    }
    return c;
}

std::string GraphTextReader::word_or_string(std::string_view what) {
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

std::optional<double> GraphTextReader::floating_point() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || std::string_view("+-.").find(text_[end]) != std::string_view::npos)) {
        ++end;
    }
    const std::string token(text_.substr(at_, end - at_));
    const std::string magnitude = token.substr(!token.empty() && token[0] == '-' ? 1 : 0);
    const bool digits = !magnitude.empty() && std::isdigit(static_cast<unsigned char>(magnitude[0]));
    if (magnitude != "inf" && magnitude != "nan" && !(digits && magnitude.find_first_of(".e") != std::string::npos)) {
        return std::nullopt;
    }
    char *stop = nullptr;
    const double value = std::strtod(token.c_str(), &stop);
    if (*stop != '\0') {
        fail(fmt::format("'{}' is no number", token));
    }
    at_ = end;
    return value;
}

Extent GraphTextReader::extent() {
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

std::vector<Extent> GraphTextReader::extents() {
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

Extent GraphTextReader::offset() {
    const std::size_t end = std::min(text_.find(" = ", at_), text_.find('\n', at_));
    const std::string_view whole = text_;
    text_ = text_.substr(0, end);
    const Extent result = extent();
    text_ = whole;
    return result;
}

}  // namespace tilewright
