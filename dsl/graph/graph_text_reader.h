// Reads the words of a printed graph: names, strings, numbers and extents; what does not fit is refused with its line and column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/graph/extent.h"

namespace tilewright {

/// Each call skips white space and comments (# to the end of the line) before what it reads.
class GraphTextReader {
public:
    GraphTextReader(std::string_view text, const std::string &file) : text_(text), file_(file) {}

    bool at_end() const { return at_ == text_.size(); }
    std::size_t here();  ///< the place of what comes next
    char next();         ///< its first character; a blank at the end
    bool accept(char c);
    void expect(char c);

    /// The name that comes next, of letters, digits, '_' and '.'; empty where there is none.
    std::string_view peek_word();
    void take(std::string_view word) { at_ += word.size(); }  ///< after peek_word()
    bool accept_word(std::string_view word);
    void expect_word(std::string_view word);
    /// Between quotes; \", \\ and \x41 stand for one character each.
    std::string string();
    std::string word_or_string(std::string_view what);

    /// A number with a point or an exponent, inf or nan; nothing is taken where another token stands.
    std::optional<double> floating_point();
    /// An expression; it reaches to the next comma or closing bracket outside its own parentheses.
    Extent extent();
    std::vector<Extent> extents();
    /// An extent that ends where the instruction goes on: at " = ", or at a comma or bracket in a list of results.
    Extent offset();

    [[noreturn]] void fail_at(std::size_t place, const std::string &why) const;
    [[noreturn]] void fail(const std::string &why) const { fail_at(at_, why); }

private:
    void skip();
    char escaped();

    std::string_view text_;
    std::string file_;
    std::size_t at_ = 0;
};

}  // namespace tilewright
