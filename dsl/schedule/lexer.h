// Splits one line of a schedule file into tokens that know their column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/schedule/schedule.h"

namespace tilewright {

struct Token {
    enum class Kind { word, number, text, symbol, end };
    Kind kind = Kind::end;
    std::string text;         ///< a quoted text without its quotes
    std::int64_t number = 0;  ///< of Kind::number
    int column = 1;           ///< counted in bytes from 1
    bool is(std::string_view symbol_or_word) const { return kind != Kind::text && text == symbol_or_word; }
};

/// A word that needs no quotes where names of models, kernels and places stand: letters, digits and any of _ - + . / # : @ [ ] $, not
/// beginning with '#'.
bool is_word(std::string_view text);
/// A name of a stage, axis or directive: a letter or '_', then letters, digits and '_'.
bool is_identifier(std::string_view text);

/// Tokens of a directive line or a condition: identifiers, numbers, quoted texts and symbols. What follows a '#' is a comment.
/// Always ends with Kind::end. UserError at a character that begins no token.
std::vector<Token> split_directive_line(std::string_view line, const SourceLocation &start);
/// Tokens of a line of words and quoted texts ("covers a b#2"). A '#' begins a comment only at the start of a word.
std::vector<Token> split_word_line(std::string_view line, const SourceLocation &start);

}  // namespace tilewright
