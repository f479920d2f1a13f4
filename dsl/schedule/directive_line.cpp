#include "dsl/schedule/directive_line.h"

#include <fmt/format.h>

#include <set>

#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "dsl/schedule/directive_table.h"

namespace tilewright {

namespace {

/// (STAGE): the reader of a staged copy, after its 'in'.
std::string parse_copy_reader(TokenReader &tokens) {
    const std::string repair = "a staged copy is written TENSOR.in(STAGE)";
    tokens.expect("(", repair);
    const std::string reader = tokens.expect_word("the stage that reads the copy", repair).text;
    tokens.expect(")", repair);
    return ".in(" + reader + ")";
}

/// IDENT, or IDENT.in(IDENT): the copy of the first that the second reads.
std::string parse_stage(TokenReader &tokens) {
    std::string stage = tokens.expect_word("a stage", "a line opens with the stage that it schedules: STAGE.NAME(ARGUMENTS)").text;
    tokens.expect(".", "a line is written STAGE.NAME(ARGUMENTS)");
    if (tokens.accept("in")) {
        stage += parse_copy_reader(tokens);
        tokens.expect(".", "a line is written TENSOR.in(STAGE).NAME(ARGUMENTS)");
    }
    return stage;
}

/// An argument that names a stage may be a staged copy as well.
std::string parse_word_argument(TokenReader &tokens) {
    std::string word = tokens.take().text;
    if (tokens.peek().is(".") && tokens.next_is("in")) {
        tokens.take();
        tokens.take();
        word += parse_copy_reader(tokens);
    }
    return word;
}

void parse_arguments(TokenReader &tokens, Directive &directive) {
    const std::string repair = fmt::format("write {}", signature(*find_directive(directive.name)));
    tokens.expect("(", repair);
    while (!tokens.accept(")")) {
        if (!directive.arguments.empty()) {
            tokens.expect_separator(repair);
        }
        directive.columns.push_back(tokens.peek().column);
        switch (tokens.peek().kind) {
            case Token::Kind::number:
                directive.arguments.emplace_back(tokens.take().number);
                break;
            case Token::Kind::text:
                directive.arguments.emplace_back(tokens.take().text);
                break;
            case Token::Kind::word:
                directive.arguments.emplace_back(parse_word_argument(tokens));
                break;
            default:
                tokens.fail("expected an argument instead of " + describe(tokens.peek()), repair);
        }
    }
}

std::string unknown_directive_repair(const std::string &name) {
    std::vector<std::string> names;
    for (const DirectiveSpec &spec : directive_table()) {
        names.emplace_back(spec.name);
    }
    return did_you_mean(name, names) + "'tilewright help directives' lists them all";
}

}  // namespace

void parse_directive_line(std::string_view line, const SourceLocation &start, Directives &into) {
    TokenReader tokens(split_directive_line(line, start), start);
    if (tokens.done()) {
        return;
    }
    const std::string stage = parse_stage(tokens);
    do {
        Directive directive{stage, "", {}, tokens.here(), {}};
        directive.name = tokens.expect_word("a directive", "a line is written STAGE.NAME(ARGUMENTS)").text;
        if (!find_directive(directive.name)) {
            schedule_error(directive.location, "", fmt::format("there is no directive '{}'", directive.name),
                           unknown_directive_repair(directive.name));
        }
        parse_arguments(tokens, directive);
        into.push_back(std::move(directive));
    } while (tokens.accept("."));
    tokens.expect_end("directives of one stage are joined by '.'; another stage begins a new line");
}

std::vector<ScheduleVariant::Comparison> parse_conditions(TokenReader &tokens) {
    const std::string repair = "a condition is written: when STAGE.AXIS <= NUMBER and …";
    std::vector<ScheduleVariant::Comparison> conditions;
    do {
        ScheduleVariant::Comparison comparison;
        comparison.location = tokens.here();
        comparison.extent = tokens.expect_word("a stage", repair).text;
        tokens.expect(".", repair);
        comparison.extent += "." + tokens.expect_word("an axis", repair).text;
        static const std::set<std::string> operators{"<=", "<", ">=", ">", "=="};
        if (!operators.count(tokens.peek().text)) {
            tokens.fail(fmt::format("expected a comparison instead of {}", describe(tokens.peek())), "compare with <= < >= > or ==");
        }
        comparison.op = tokens.take().text;
        comparison.value = tokens.expect_number("a number", repair).number;
        conditions.push_back(std::move(comparison));
    } while (tokens.accept("and"));
    tokens.expect_end(repair);
    return conditions;
}

Directives parse_directives(std::string_view text, const std::string &file) {
    Directives directives;
    SourceLocation start{file, 0, 1};
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        ++start.line;
        parse_directive_line(text.substr(0, end), start, directives);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return directives;
}

}  // namespace tilewright
