// The text forms of extents: ours, and those that torch.export writes.
#include <array>
#include <cctype>
#include <functional>

#include "dsl/error.h"
#include "dsl/graph/extent_expression.h"

namespace tilewright {
namespace {

using Kind = Extent::Kind;

bool is_atom(const Extent &extent) {
    switch (extent.kind()) {
        case Kind::constant:
            return extent.value() >= 0;
        case Kind::symbol:
        case Kind::mod:
        case Kind::min:
        case Kind::max:
            return true;
        default:
            return false;
    }
}

std::string in_parentheses(const Extent &extent) { return is_atom(extent) ? extent.to_string() : "(" + extent.to_string() + ")"; }

std::string call(const char *function, const std::vector<Extent> &operands) {
    std::string text = std::string(function) + "(";
    for (std::size_t i = 0; i < operands.size(); ++i) {
        text += (i > 0 ? ", " : "") + operands[i].to_string();
    }
    return text + ")";
}

/// "s0*4"; a negative coefficient stands in front, as "-s0*4".
std::string product_text(const std::vector<Extent> &operands) {
    std::string text;
    std::size_t count = operands.size();
    std::string last;
    if (const auto coefficient = operands.back().constant()) {
        --count;
        text = *coefficient < 0 ? "-" : "";
        // The smallest 64-bit number has no positive twin; it stays a factor in parentheses.
        if (*coefficient == INT64_MIN) {
            text = "";
            last = fmt::format("*({})", *coefficient);
        } else if (*coefficient != -1) {
            last = fmt::format("*{}", *coefficient < 0 ? -*coefficient : *coefficient);
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        text += (i > 0 ? "*" : "") + in_parentheses(operands[i]);
    }
    return text + last;
}

/// Recursive descent over sums, products and calls. Limits keep a hostile string from costing more than it should.
class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {
        if (text.size() > 1 << 16) {
            user_error("a size expression has {} characters; the limit is {}", text.size(), 1 << 16);
        }
    }

    Extent parse() {
        const Extent result = integer(sum());
        skip();
        if (at_ != text_.size()) {
            fail("unexpected text");
        }
        return result;
    }

private:
    /// A quotient that waits for floor or ceiling; the denominator of an integer is 1.
    struct Fraction {
        Extent top, bottom = 1;
    };

    [[noreturn]] void fail(const std::string &why) const {
        user_error("column {} of the size \"{}\": {}", at_ + 1, text_.substr(0, 200), why);
    }
    Extent integer(const Fraction &value) const {
        if (!(value.bottom == Extent(1))) {
            fail("a quotient that is not rounded to an integer");
        }
        return value.top;
    }
    void skip() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) {
            ++at_;
        }
    }
    bool accept(std::string_view token) {
        skip();
        if (text_.substr(at_, token.size()) != token) {
            return false;
        }
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!accept(token)) {
            fail(fmt::format("expected '{}'", token));
        }
    }

    Fraction sum() {
        if (++depth_ > 100) {
            fail("nested more than 100 deep");
        }
        Fraction result = term();
        for (;;) {
            if (accept("+")) {
                result = {integer(result) + integer(term())};
            } else if (accept("-")) {
                result = {integer(result) - integer(term())};
            } else {
                break;
            }
        }
        --depth_;
        return result;
    }
    Fraction term() {
        Fraction result = factor();
        for (;;) {
            if (accept("//")) {
                result = {floor_div(integer(result), integer(factor()))};
            } else if (accept("/")) {
                const Fraction divisor = factor();
                result = {result.top * divisor.bottom, result.bottom * divisor.top};
            } else if (accept("%")) {
                result = {mod(integer(result), integer(factor()))};
            } else if (text_.substr(at_, 2) != "**" && accept("*")) {
                const Fraction other = factor();
                result = {result.top * other.top, result.bottom * other.bottom};
            } else {
                break;
            }
        }
        return result;
    }
    Fraction factor() {
        // Signs are counted in a loop: a string of them must not recurse.
        bool negative = false;
        for (;;) {
            if (accept("-")) {
                negative = !negative;
            } else if (!accept("+")) {
                break;
            }
        }
        Fraction result = power(negative);
        return negative && !literal_was_signed_ ? Fraction{result.top * Extent(-1), result.bottom} : result;
    }
    Fraction power(bool negative) {
        literal_was_signed_ = false;
        Fraction base = atom(negative);
        const bool was_signed = literal_was_signed_;
        skip();
        if (accept("**")) {
            const Extent magnitude = was_signed ? integer(base) * Extent(-1) : integer(base);
            base = {raise(magnitude, integer(atom(false)))};
            literal_was_signed_ = false;
            return base;
        }
        literal_was_signed_ = was_signed;
        return base;
    }
    Extent raise(const Extent &base, const Extent &exponent) const {
        const auto times = exponent.constant();
        if (!times || *times < 0 || *times > 64) {
            fail("an exponent must be an integer from 0 to 64");
        }
        Extent result = 1;
        for (std::int64_t i = 0; i < *times; ++i) {
            result = result * base;
        }
        return result;
    }
    Fraction atom(bool negative) {
        skip();
        if (accept("(")) {
            const Fraction inside = sum();
            expect(")");
            literal_was_signed_ = false;
            return inside;
        }
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
            return {number(negative)};
        }
        const std::string name = identifier();
        if (name.empty()) {
            fail(at_ == text_.size() ? "the expression ends early" : "expected a number, a symbol or a function");
        }
        const Fraction value = accept("(") ? function(name) : Fraction{Extent::symbol(name)};
        literal_was_signed_ = false;
        return value;
    }
    /// Reads the sign together with the digits, so that the smallest 64-bit number is read whole.
    std::int64_t number(bool negative) {
        std::int64_t value = 0;
        while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
            const int digit = text_[at_] - '0';
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
                fail("a number of more than 64 bits");
            }
            ++at_;
        }
        if (at_ < text_.size() && text_[at_] == '.') {
            fail("sizes are integers");
        }
        literal_was_signed_ = negative;
        return value;
    }
    std::string identifier() {
        skip();
        std::string name;
        while (at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                      (!name.empty() && std::isdigit(static_cast<unsigned char>(text_[at_]))))) {
            name += text_[at_++];
        }
        return name;
    }
    /// The opening parenthesis is read.
    Fraction function(const std::string &name) {
        if (name == "Symbol" || name == "Dummy") {
            return {symbol()};
        }
        std::vector<Fraction> arguments;
        if (!accept(")")) {
            do {
                if (arguments.size() == 64) {
                    fail("a function with more than 64 arguments");
                }
                arguments.push_back(sum());
                skip();
                if (accept("=")) {
                    // evaluate=False and its like say nothing about the value.
                    identifier();
                    arguments.pop_back();
                }
            } while (accept(","));
            expect(")");
        }
        return apply(name, arguments);
    }
    Extent symbol() {
        skip();
        const char quote = at_ < text_.size() ? text_[at_] : ' ';
        if (quote != '\'' && quote != '"') {
            fail("expected the symbol's name in quotes");
        }
        ++at_;
        const std::string name = identifier();
        if (name.empty() || at_ >= text_.size() || text_[at_] != quote) {
            fail("a symbol's name is made of letters, digits and _");
        }
        ++at_;
        while (accept(",")) {  // positive=True, integer=True
            identifier();
            expect("=");
            identifier();
        }
        expect(")");
        return Extent::symbol(name);
    }
    Fraction apply(const std::string &name, const std::vector<Fraction> &arguments) {
        const auto need = [&](std::size_t count) {
            if (arguments.size() != count) {
                fail(fmt::format("{} takes {} arguments, not {}", name, count, arguments.size()));
            }
        };
        const auto at = [&](std::size_t i) { return integer(arguments[i]); };
        const auto fold = [&](const std::function<Extent(const Extent &, const Extent &)> &combine) {
            if (arguments.empty()) {
                fail(fmt::format("{} takes at least one argument", name));
            }
            Extent result = at(0);
            for (std::size_t i = 1; i < arguments.size(); ++i) {
                result = combine(result, at(i));
            }
            return Fraction{result};
        };
        if (name == "Integer" || name == "Identity" || name == "TruncToInt") {
            need(1);
            return {at(0)};
        }
        if (name == "Add") {
            return fold([](const Extent &a, const Extent &b) { return a + b; });
        }
        if (name == "Mul") {
            Fraction result{1};
            for (const Fraction &factor : arguments) {
                result = {result.top * factor.top, result.bottom * factor.bottom};
            }
            return result;
        }
        if (name == "Max") {
            return fold([](const Extent &a, const Extent &b) { return max(a, b); });
        }
        if (name == "Min") {
            return fold([](const Extent &a, const Extent &b) { return min(a, b); });
        }
        if (name == "Pow" || name == "PowByNatural") {
            need(2);
            return {raise(at(0), at(1))};
        }
        if (name == "FloorDiv" || name == "CleanDiv") {
            need(2);
            return {floor_div(at(0), at(1))};
        }
        if (name == "CeilDiv") {
            need(2);
            return {ceil_div(at(0), at(1))};
        }
        if (name == "Mod" || name == "PythonMod") {
            need(2);
            return {mod(at(0), at(1))};
        }
        if (name == "ModularIndexing") {
            need(3);
            return {mod(floor_div(at(0), at(1)), at(2))};
        }
        if (name == "IntTrueDiv" || name == "Rational") {
            need(2);
            return {at(0), at(1)};
        }
        if (name == "floor" || name == "FloorToInt") {
            need(1);
            return {floor_div(arguments[0].top, arguments[0].bottom)};
        }
        if (name == "ceiling" || name == "CeilToInt") {
            need(1);
            return {Extent(-1) * floor_div(Extent(-1) * arguments[0].top, arguments[0].bottom)};
        }
        fail(fmt::format("the function {} is not supported in sizes", name));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool literal_was_signed_ = false;
};

}  // namespace

std::string Extent::to_string() const {
    const Expression &e = *expression_;
    switch (e.kind) {
        case Kind::constant:
            return std::to_string(e.value);
        case Kind::symbol:
            return e.name;
        case Kind::product:
            return product_text(e.operands);
        case Kind::floor_div:
            return in_parentheses(e.operands[0]) + "//" + in_parentheses(e.operands[1]);
        case Kind::mod:
            return call("Mod", e.operands);
        case Kind::min:
            return call("Min", e.operands);
        case Kind::max:
            return call("Max", e.operands);
        case Kind::sum:
            break;
    }
    std::string text = e.operands[0].to_string();
    for (std::size_t i = 1; i < e.operands.size(); ++i) {
        const std::string term = e.operands[i].to_string();
        text += term[0] == '-' ? " - " + term.substr(1) : " + " + term;
    }
    return text;
}

Extent Extent::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace tilewright
