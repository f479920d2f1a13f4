// Reads the tokens of one line in order; what does not fit is refused at its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/schedule/lexer.h"

namespace tilewright {

/// The token as an error message names it.
std::string describe(const Token &token);

class TokenReader {
public:
    TokenReader(std::vector<Token> tokens, SourceLocation location) : tokens_(std::move(tokens)), location_(std::move(location)) {}

    const Token &peek() const { return tokens_[at_]; }
    Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
    bool next_is(std::string_view text) const { return at_ + 1 < tokens_.size() && tokens_[at_ + 1].is(text); }
    bool done() const { return peek().kind == Token::Kind::end; }
    /// Takes the token where it is this word or symbol.
    bool accept(std::string_view text);

    /// UserError with `repair` where another token stands.
    void expect(std::string_view text, const std::string &repair);
    void expect_separator(const std::string &repair);                       ///< of arguments
    Token expect_word(const std::string &what, const std::string &repair);  ///< or a quoted text
    Token expect_number(const std::string &what, const std::string &repair);
    void expect_end(const std::string &repair) const;

    SourceLocation here() const { return {location_.file, location_.line, peek().column}; }
    [[noreturn]] void fail(const std::string &cause, const std::string &repair) const { schedule_error(here(), "", cause, repair); }

private:
    std::vector<Token> tokens_;  ///< the last is Kind::end
    SourceLocation location_;
    std::size_t at_ = 0;
};

}  // namespace tilewright
