#include "dsl/schedule/lexer.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_word_character(char c) { return is_letter(c) || is_digit(c) || std::string_view("-+./#:@[]$").find(c) != std::string_view::npos; }

class LineLexer {
public:
    LineLexer(std::string_view line, const SourceLocation &start) : line_(line), start_(start) {}

    std::vector<Token> directive_tokens() {
        std::vector<Token> tokens;
        while (!at_end()) {
            tokens.push_back(directive_token());
        }
        return finish(std::move(tokens));
    }

    std::vector<Token> word_tokens() {
        std::vector<Token> tokens;
        while (!at_end()) {
            if (line_[at_] == '"') {
                tokens.push_back(text_token());
                continue;
            }
            const std::size_t begin = at_;
            while (at_ < line_.size() && is_word_character(line_[at_])) {
                ++at_;
            }
            if (begin == at_) {
                unexpected("words are separated by blanks; put a name with other characters between quotes");
            }
            tokens.push_back(token(Token::Kind::word, begin));
        }
        return finish(std::move(tokens));
    }

private:
    bool at_end() {
        while (at_ < line_.size() && is_blank(line_[at_])) {
            ++at_;
        }
        return at_ == line_.size() || line_[at_] == '#';
    }

    Token directive_token() {
        const char c = line_[at_];
        const std::size_t begin = at_;
        if (c == '"') {
            return text_token();
        }
        if (is_letter(c)) {
            while (at_ < line_.size() && (is_letter(line_[at_]) || is_digit(line_[at_]))) {
                ++at_;
            }
            return token(Token::Kind::word, begin);
        }
        if (is_digit(c) || (c == '-' && at_ + 1 < line_.size() && is_digit(line_[at_ + 1]))) {
            return number_token();
        }
        if (c == '<' || c == '>' || c == '=') {
            at_ += at_ + 1 < line_.size() && line_[at_ + 1] == '=' ? 2 : 1;
            return token(Token::Kind::symbol, begin);
        }
        if (c == '.' || c == ',' || c == '(' || c == ')') {
            ++at_;
            return token(Token::Kind::symbol, begin);
        }
        unexpected("a directive is written STAGE.NAME(ARGUMENTS); remove the character");
    }

    Token number_token() {
        const std::size_t begin = at_++;
        while (at_ < line_.size() && (is_digit(line_[at_]) || is_letter(line_[at_]))) {
            ++at_;
        }
        Token result = token(Token::Kind::number, begin);
        const auto [end, error] = std::from_chars(result.text.data(), result.text.data() + result.text.size(), result.number);
        if (error != std::errc() || end != result.text.data() + result.text.size()) {
            fail(begin, fmt::format("'{}' is no 64-bit integer", result.text), "write a plain decimal number");
        }
        return result;
    }

    Token text_token() {
        const std::size_t begin = at_++;
        Token result{Token::Kind::text, "", 0, column(begin)};
        while (at_ < line_.size() && line_[at_] != '"') {
            if (line_[at_] == '\\' && at_ + 1 < line_.size()) {
                ++at_;
            }
            result.text += line_[at_++];
        }
        if (at_ >= line_.size()) {
            fail(begin, "a quoted text has no end", "close it with \" on the same line");
        }
        ++at_;
        return result;
    }

    Token token(Token::Kind kind, std::size_t begin) const {
        return {kind, std::string(line_.substr(begin, at_ - begin)), 0, column(begin)};
    }
    std::vector<Token> finish(std::vector<Token> tokens) const {
        tokens.push_back({Token::Kind::end, "", 0, column(at_)});
        return tokens;
    }
    int column(std::size_t position) const { return start_.column + static_cast<int>(position); }

    [[noreturn]] void unexpected(const std::string &repair) const {
        const unsigned char c = static_cast<unsigned char>(line_[at_]);
        fail(at_, c >= 0x20 && c < 0x7F ? fmt::format("unexpected character '{}'", line_[at_]) : fmt::format("unexpected byte 0x{:02x}", c),
             repair);
    }
    [[noreturn]] void fail(std::size_t position, const std::string &cause, const std::string &repair) const {
        schedule_error({start_.file, start_.line, column(position)}, "", cause, repair);
    }

    std::string_view line_;
    SourceLocation start_;
    std::size_t at_ = 0;
};

}  // namespace

bool is_word(std::string_view text) {
    if (text.empty() || text.front() == '#') {
        return false;
    }
    for (char c : text) {
        if (!is_word_character(c)) {
            return false;
        }
    }
    return true;
}

bool is_identifier(std::string_view text) {
    if (text.empty() || !is_letter(text.front())) {
        return false;
    }
    for (char c : text) {
        if (!is_letter(c) && !is_digit(c)) {
            return false;
        }
    }
    return true;
}

std::vector<Token> split_directive_line(std::string_view line, const SourceLocation &start) {
    return LineLexer(line, start).directive_tokens();
}

std::vector<Token> split_word_line(std::string_view line, const SourceLocation &start) { return LineLexer(line, start).word_tokens(); }

}  // namespace tilewright
