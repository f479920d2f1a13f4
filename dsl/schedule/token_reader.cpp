#include "dsl/schedule/token_reader.h"

#include <fmt/format.h>

namespace tilewright {

std::string describe(const Token &token) {
    switch (token.kind) {
        case Token::Kind::end:
            return "the end of the line";
        case Token::Kind::text:
            return "\"" + token.text + "\"";
        default:
            return "'" + token.text + "'";
    }
}

bool TokenReader::accept(std::string_view text) {
    if (done() || !peek().is(text)) {
        return false;
    }
    ++at_;
    return true;
}

void TokenReader::expect(std::string_view text, const std::string &repair) {
    if (!accept(text)) {
        fail(fmt::format("expected '{}' instead of {}", text, describe(peek())), repair);
    }
}

void TokenReader::expect_separator(const std::string &repair) {
    if (!accept(",")) {
        fail(fmt::format("expected ',' or ')' instead of {}", describe(peek())), repair);
    }
}

Token TokenReader::expect_word(const std::string &what, const std::string &repair) {
    if (peek().kind != Token::Kind::word && peek().kind != Token::Kind::text) {
        fail(fmt::format("expected {} instead of {}", what, describe(peek())), repair);
    }
    return take();
}

Token TokenReader::expect_number(const std::string &what, const std::string &repair) {
    if (peek().kind != Token::Kind::number) {
        fail(fmt::format("expected {} instead of {}", what, describe(peek())), repair);
    }
    return take();
}

void TokenReader::expect_end(const std::string &repair) const {
    if (!done()) {
        fail("unexpected " + describe(peek()), repair);
    }
}

}  // namespace tilewright
